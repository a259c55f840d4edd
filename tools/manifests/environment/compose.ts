import { readFileSync } from 'node:fs';
import { parse } from 'yaml';

/** A container of docker/compose.yaml that runs one of the services' entry points. */
export interface ComposeContainer {
  readonly name: string;
  readonly app: string;
  readonly entryPoint: string;
  readonly variables: Readonly<Record<string, string>>;
}

interface ComposeService {
  build?: { args?: { APP?: string } };
  command?: string[];
  environment?: Record<string, string | number | boolean>;
}

/**
 * The containers of a compose file that are built from an app, with `${NAME:?}` replaced from an environment file.
 * @throws {Error} for a key twice, and for a variable that the environment file does not have
 */
export function composeContainers(composeText: string, environmentText: string): ComposeContainer[] {
  // Merge keys are how compose files repeat nothing.
  const compose = parse(composeText, { merge: true, uniqueKeys: true }) as {
    services: Record<string, ComposeService>;
  };
  const values = readEnvironmentFile(environmentText);
  return Object.entries(compose.services).flatMap(([name, { build, command, environment = {} }]) => {
    const app = build?.args?.APP;
    if (app === undefined) return [];
    const entryPoint = command?.[1]?.replace(/\.js$/, '') ?? 'main';
    const variables = Object.fromEntries(
      Object.entries(environment).map(([key, value]) => [key, substitute(String(value), values)]),
    );
    return [{ name, app, entryPoint, variables }];
  });
}

/** The same for files. */
export function readCompose(composeFile: string, environmentFile: string): ComposeContainer[] {
  return composeContainers(readFileSync(composeFile, 'utf8'), readFileSync(environmentFile, 'utf8'));
}

function readEnvironmentFile(text: string): Record<string, string> {
  const lines = text.split('\n').filter((line) => /^[A-Za-z_]\w*=/.test(line));
  return Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  );
}

function substitute(value: string, values: Readonly<Record<string, string>>): string {
  return value.replace(/\$\{(\w+)(?::?\?[^}]*)?\}/g, (_, name: string) => {
    const found = values[name];
    if (found === undefined) throw new Error(`the environment file has no ${name}`);
    return found;
  });
}
