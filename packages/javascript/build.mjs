// Builds what packages have of the modules: each minified, with its source map and its declarations.
//
//   node build.mjs [directory]   default: dist
//
// Sites need none of this: it runs when a package is made, for npm and for PyPI.

import { writeFileSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

import { minify } from "terser";
import ts from "typescript";

const MODULES = ["answers", "client", "fragments", "inspect", "live", "maps"];
const sources = MODULES.map((name) =>
  fileURLToPath(new URL(`../../realtime/static/realtime/${name}.js`, import.meta.url)),
);
const directory = process.argv[2] ?? fileURLToPath(new URL("dist", import.meta.url));

await mkdir(directory, { recursive: true });
for (const [index, name] of MODULES.entries()) {
  const { code, map } = await minify(
    { [`${name}.source.js`]: await readFile(sources[index], "utf8") },
    {
      ecma: 2022,
      module: true,
      compress: { passes: 3, sequences: false },
      // members that begin with _ are for their module alone
      mangle: { properties: { regex: /^_/ } },
      sourceMap: { filename: `${name}.js`, url: `${name}.js.map`, includeSources: true },
    },
  );
  await writeFile(`${directory}/${name}.js`, code);
  await writeFile(`${directory}/${name}.js.map`, map);
}

const program = ts.createProgram(sources, {
  allowJs: true,
  declaration: true,
  emitDeclarationOnly: true,
  outDir: directory,
  noCheck: true, // the types are checked by a test
  strict: true,
  target: ts.ScriptTarget.ES2022,
  types: [],
});
const { diagnostics } = program.emit(undefined, (name, text) => {
  writeFileSync(name, withoutInternal(text));
});
if (diagnostics.length) {
  console.error(ts.formatDiagnostics(diagnostics, ts.createCompilerHost({})));
  process.exit(1);
}

/** Returns declarations without the members of classes that begin with _. TypeScript has an option for
 * that, which does nothing for declarations that come from JavaScript. */
function withoutInternal(text) {
  const { statements } = ts.createSourceFile("module.d.ts", text, ts.ScriptTarget.ES2022);
  const members = statements.filter(ts.isClassDeclaration).flatMap(({ members }) => [...members]);
  return members
    .filter(({ name }) => name?.text?.startsWith("_"))
    .reverse()
    .reduce((kept, { pos, end }) => kept.slice(0, pos) + kept.slice(end), text);
}
