import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { workspaceFile } from './workspace-file';

/** What the TypeScript compiler, at its strictest, says of a client of an API that uses the types which openapi-typescript generates.
 *  @param document file of the OpenAPI document
 *  @param usage statements after `import type { components, operations, paths } from './api';` */
export async function clientTypeErrors(document: string, usage: string): Promise<string[]> {
  const { default: ts } = await import('typescript');
  const folder = mkdtempSync(join(tmpdir(), 'api-types-'));
  try {
    // Its package mixes module kinds, which Jest does not load; and this is the command that users type.
    const generator = workspaceFile('node_modules/openapi-typescript/bin/cli.js');
    await promisify(execFile)(process.execPath, [generator, document, '-o', join(folder, 'api.ts')]);
    const main = join(folder, 'usage.ts');
    writeFileSync(main, `import type { components, operations, paths } from './api';\n${usage}\n`);
    const program = ts.createProgram([main], {
      strict: true,
      exactOptionalPropertyTypes: true,
      noEmit: true,
      skipLibCheck: true,
      lib: ['lib.es5.d.ts'],
      types: [],
      target: ts.ScriptTarget.ES2022,
    });
    const diagnostics = ts.getPreEmitDiagnostics(program);
    return diagnostics.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
