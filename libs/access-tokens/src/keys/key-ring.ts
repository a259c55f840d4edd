import type { KeyQuery, KeySource } from './key-source';
import { createVerificationKey } from './verification-key';
import type { KeyMaterial, VerificationKey } from './verification-key';

/** Keys held in memory, replaced as a whole; what loads keys from a database or a URL keeps them here. */
export class KeyRing implements KeySource {
  private byName: ReadonlyMap<string, VerificationKey>;
  private replacements = 0;

  /** @throws {RangeError} when two keys of one issuer share a key id */
  constructor(keys: readonly VerificationKey[] = []) {
    this.byName = indexByName(keys);
  }

  /** From now on exactly these keys are current. @throws {RangeError} when two keys of one issuer share a key id */
  replace(keys: readonly VerificationKey[]): void {
    const byName = indexByName(keys);
    if (isSameRing(byName, this.byName)) return;
    this.byName = byName;
    this.replacements += 1;
  }

  findKey({ kid, alg, issuer }: KeyQuery): VerificationKey | null {
    const key = this.byName.get(ringName(issuer, kid)) ?? this.byName.get(ringName(undefined, kid));
    return key?.alg === alg ? key : null;
  }

  generation(): number {
    return this.replacements;
  }
}

/** Keys that never change while the process runs. @throws {RangeError} as `createVerificationKey` and `KeyRing` do */
export function staticKeys(keys: readonly KeyMaterial[]): KeySource {
  return new KeyRing(keys.map(createVerificationKey));
}

function indexByName(keys: readonly VerificationKey[]): Map<string, VerificationKey> {
  const byName = new Map<string, VerificationKey>();
  for (const key of keys) {
    const name = ringName(key.issuer, key.kid);
    if (byName.has(name))
      throw new RangeError(`two keys of one issuer share the key id ${key.kid ?? '(none)'}`);
    byName.set(name, key);
  }
  return byName;
}

function ringName(issuer: string | undefined, kid: string | undefined): string {
  return JSON.stringify([issuer ?? null, kid ?? null]);
}

function isSameRing(
  a: ReadonlyMap<string, VerificationKey>,
  b: ReadonlyMap<string, VerificationKey>,
): boolean {
  if (a.size !== b.size) return false;
  for (const [name, key] of a) {
    const other = b.get(name);
    if (other?.alg !== key.alg || !other.key.equals(key.key)) return false;
  }
  return true;
}
