// Checks AsyncAPI documents: prints a line of JSON for each, with what the parser reads and finds.
//
//   node asyncapi.mjs document.json ...

import { readFile } from "node:fs/promises";

import { Parser } from "@asyncapi/parser";

for (const path of process.argv.slice(2)) {
  const { document, diagnostics } = await new Parser().parse(await readFile(path, "utf8"));
  const operations = document?.operations().all() ?? [];
  console.log(
    JSON.stringify({
      // 0: error, 1: warning; hints ask for a license, tags and the like
      found: diagnostics.filter(({ severity }) => severity < 2).map(({ message }) => message),
      operations: Object.fromEntries(
        operations.map((each) => [
          `${each.action()} ${each.channels().all()[0]?.address()}`,
          each.messages().all().map((message) => message.name()),
        ]),
      ),
    }),
  );
}
