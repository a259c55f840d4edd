/**
 * Lints the texts on standard input, a JSON array of {path, text}, as if each stood at its path, with the
 * workspace's real configuration. Prints, for each, a JSON array of `rule: message`. Run natively: Jest
 * cannot import the ESM configuration.
 */
import { join, resolve } from 'node:path';
import { json } from 'node:stream/consumers';
import { ESLint } from 'eslint';
import tseslint from 'typescript-eslint';

const workspace = resolve(import.meta.dirname, '../..');
// The file does not exist, so rules that need the TypeScript program cannot run on it.
const eslint = new ESLint({ cwd: workspace, overrideConfig: tseslint.configs.disableTypeChecked as never });

const reports = [];
for (const { path, text } of (await json(process.stdin)) as { path: string; text: string }[]) {
  const [result] = await eslint.lintText(text, { filePath: join(workspace, path) });
  reports.push(result?.messages.map(({ ruleId, message }) => `${ruleId ?? 'fatal'}: ${message}`));
}
console.log(JSON.stringify(reports));
