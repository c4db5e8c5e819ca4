// Compiles a schema as schemastore.org checks one: Ajv in strict mode, knowing the additions that the store knows and
// those that stand behind the schema's path. Then validates files. Writes {FILE: whether it is valid}.
"use strict";

const { readFileSync } = require("node:fs");
const Ajv = require("ajv");

const STORE_KNOWS = ["allowTrailingCommas", "defaultSnippets", "markdownDescription", "enumDescriptions"];

const { schema, additions, files } = JSON.parse(readFileSync(0, "utf8"));
const ajv = new Ajv({ strict: true });
[...STORE_KNOWS, ...additions].forEach((keyword) => ajv.addKeyword(keyword));
const accepts = ajv.compile(JSON.parse(readFileSync(schema, "utf8")));
const verdicts = files.map((file) => [file, accepts(JSON.parse(readFileSync(file, "utf8")))]);
process.stdout.write(JSON.stringify(Object.fromEntries(verdicts)));
