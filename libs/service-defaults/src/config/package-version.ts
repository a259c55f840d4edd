import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The version in the nearest `package.json` at or above `folder`; `0.0.0` when there is none. */
export function packageVersion(folder: string): string {
  for (let at = folder; ; at = dirname(at)) {
    const file = join(at, 'package.json');
    const version = existsSync(file) ? versionIn(file) : undefined;
    if (version !== undefined) return version;
    if (dirname(at) === at) return '0.0.0';
  }
}

function versionIn(file: string): string | undefined {
  const { version } = JSON.parse(readFileSync(file, 'utf8')) as { version?: unknown };
  return typeof version === 'string' ? version : undefined;
}
