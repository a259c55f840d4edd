/**
 * Lints the texts on standard input, a JSON array of `{path, text}`, with the workspace's real configuration,
 * each as if it were the file at its path. Prints a JSON array with one array of `rule: message` for each
 * text. Runs under Node itself: Jest cannot import the ESM configuration.
 */
import { join, resolve } from 'node:path';
import { json } from 'node:stream/consumers';
import { ESLint } from 'eslint';
import tseslint from 'typescript-eslint';

const workspace = resolve(import.meta.dirname, '../..');
// The files do not exist, so rules that need type information cannot run on them.
const eslint = new ESLint({ cwd: workspace, overrideConfig: tseslint.configs.disableTypeChecked as never });

const reports = [];
for (const { path, text } of (await json(process.stdin)) as { path: string; text: string }[]) {
  const [result] = await eslint.lintText(text, { filePath: join(workspace, path) });
  reports.push(result?.messages.map(({ ruleId, message }) => `${ruleId ?? 'fatal'}: ${message}`));
}
console.log(JSON.stringify(reports));
