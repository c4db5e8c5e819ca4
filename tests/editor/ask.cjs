// Asks the JSON client of VS Code about files. Reads {"schema": PATH, "questions": [{"do", "text", "at"?, "path"?}]} from
// standard input and writes one answer for each question; a client that cannot answer ends this with an error.
"use strict";

const { readFileSync } = require("node:fs");
const { fileURLToPath, pathToFileURL } = require("node:url");
const { getLanguageService, ClientCapabilities, TextDocument } = require("vscode-json-languageservice");

const { schema, questions } = JSON.parse(readFileSync(0, "utf8"));
// A path that is associated by its name, as "json.schemas" in the settings does it.
const ASSOCIATED = "file:///job/mooncake-store.json";

const service = getLanguageService({
  clientCapabilities: ClientCapabilities.LATEST,
  schemaRequestService: async (uri) => readFileSync(fileURLToPath(uri), "utf8"),
  workspaceContext: { resolveRelativePath: (path, base) => new URL(path, base).href },
});
service.configure({
  validate: true,
  allowComments: false,
  schemas: [{ uri: pathToFileURL(schema).href, fileMatch: ["mooncake-store*.json"] }],
});

const documented = ({ label, documentation, detail }) => ({
  label,
  documentation: typeof documentation === "string" ? documentation : documentation?.value,
  detail,
});

async function answer({ do: what, text, at, path }) {
  const document = TextDocument.create(path ? pathToFileURL(path).href : ASSOCIATED, "json", 1, text);
  const json = service.parseJSONDocument(document);
  switch (what) {
    case "diagnose": {
      const found = await service.doValidation(document, json);
      return found.map(({ range, message }) => ({ marked: document.getText(range), message }));
    }
    case "complete": {
      const { items } = await service.doComplete(document, document.positionAt(at), json);
      return items.map(documented);
    }
    case "hover": {
      const hover = await service.doHover(document, document.positionAt(at), json);
      return { marked: document.getText(hover.range), shown: [hover.contents].flat().join("\n") };
    }
    default:
      throw new Error(`no such question: ${what}`);
  }
}

Promise.all(questions.map(answer)).then((answers) => process.stdout.write(JSON.stringify(answers)));
