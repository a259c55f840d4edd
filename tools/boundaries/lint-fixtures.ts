/**
 * Lints every fixture as if it stood at the path its first line names, with the workspace's real configuration, and prints
 * one JSON array of {fixture, expectedRule, says, reported}. `says` tells rules apart that share one id. Run natively: Jest cannot import the ESM configuration.
 */
import { readFileSync, readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { ESLint } from 'eslint';
import tseslint from 'typescript-eslint';

const workspace = resolve(import.meta.dirname, '../..');
const fixtures = join(import.meta.dirname, 'fixtures');

// A fixture does not exist at the path it claims, so rules that need the TypeScript program cannot run on it.
const eslint = new ESLint({ cwd: workspace, overrideConfig: tseslint.configs.disableTypeChecked as never });

const results = [];
for (const fixture of readdirSync(fixtures).sort()) {
  const text = readFileSync(join(fixtures, fixture), 'utf8');
  const [, path, expectedRule, says = ''] =
    /^\/\/ path: (\S+)\n\/\/ rule: (\S+)\n(?:\/\/ says: (.+)\n)?/.exec(text) ?? [];
  if (path === undefined) throw new Error(`${fixture} must begin with its path and rule`);
  const [result] = await eslint.lintText(text, { filePath: join(workspace, path) });
  results.push({
    fixture,
    expectedRule,
    says,
    reported: result?.messages.map((message) => `${message.ruleId ?? 'fatal'}: ${message.message}`),
  });
}
console.log(JSON.stringify(results));
