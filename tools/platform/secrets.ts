import { randomBytes } from 'node:crypto';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { isErrorCode } from './process-identity.ts';

/**
 * Random secrets by name, made when first asked for and kept in one file that only its owner can read, so that a second
 * start opens the same databases and accepts the same tokens.
 */
export class SecretFile {
  readonly #file: string;
  readonly #values: Record<string, string>;

  constructor(file: string) {
    this.#file = file;
    this.#values = readValues(file);
  }

  /** The secret called `name`: 32 random bytes as base64url, or as this file has it. */
  get(name: string): string {
    const known = this.#values[name];
    if (known !== undefined) return known;
    const value = randomBytes(32).toString('base64url');
    this.#values[name] = value;
    const next = `${this.#file}.next`;
    writeFileSync(next, JSON.stringify(this.#values, null, 2), { mode: 0o600 });
    renameSync(next, this.#file);
    return value;
  }
}

function readValues(file: string): Record<string, string> {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Record<string, string>;
  } catch (error) {
    if (isErrorCode(error, 'ENOENT')) return {};
    throw error;
  }
}
