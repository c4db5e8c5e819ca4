"""What a command answers: documents for programs, pages for people."""
