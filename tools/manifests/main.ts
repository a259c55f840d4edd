/**
 * Renders kustomizations and checks them: schemas, Pod Security, references, secrets.
 *   node tools/manifests/main.ts k8s/overlays/production
 *     prints the problems; exits with 1 if there are any
 *   node tools/manifests/main.ts --schemas-of -
 *     reads objects as a JSON array; prints the problems that the schemas find, as JSON
 */
import { text } from 'node:stream/consumers';
import { render } from './renderings.ts';
import type { KubernetesObject } from './kubernetes-object.ts';
import { policyProblems } from './policies.ts';
import { schemaProblems } from './schema-problems.ts';

async function main(args: readonly string[]): Promise<number> {
  if (args[0] === '--schemas-of') {
    const objects = JSON.parse(await text(process.stdin)) as KubernetesObject[];
    console.log(JSON.stringify(await schemaProblems(objects)));
    return 0;
  }
  if (args.length === 0) {
    console.error(
      'Name at least one folder, for example: node tools/manifests/main.ts k8s/overlays/production',
    );
    return 2;
  }
  const results = await Promise.all(args.map((folder) => check(folder)));
  return results.every(Boolean) ? 0 : 1;
}

async function check(folder: string): Promise<boolean> {
  const objects = render(process.cwd(), folder);
  const problems = [...(await schemaProblems(objects)), ...policyProblems(objects)];
  for (const problem of problems) console.log(`✘ ${folder}: ${problem}`);
  console.log(
    `${problems.length === 0 ? '✔' : '✘'} ${folder}: ${objects.length} objects, ${problems.length} problems`,
  );
  return problems.length === 0;
}

process.exitCode = await main(process.argv.slice(2)).catch((error: unknown) => {
  console.error(error instanceof Error ? `✘ ${error.message}` : error);
  return 2;
});
