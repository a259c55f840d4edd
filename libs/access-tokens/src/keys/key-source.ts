import type { SigningAlgorithm } from '../token/parse-token';
import type { VerificationKey } from './verification-key';

/** What a token says about its key. Unverified: good for looking up, never for building a key. */
export interface KeyQuery {
  kid?: string | undefined;
  alg: SigningAlgorithm;
  issuer: string;
}

/** Where verification keys come from. */
export interface KeySource {
  /**
   * The current key that this issuer's tokens of this `kid` and algorithm are signed with, or null.
   * @throws {TokenVerificationUnavailableError} when that cannot be known now
   */
  findKey(query: KeyQuery): VerificationKey | null | Promise<VerificationKey | null>;
  /**
   * A number that changes whenever a key was added, replaced or removed, so that verified tokens may be remembered in
   * between; null: "ask `findKey` again". A source without it is asked for every request.
   */
  generation?(): number | null;
}

/** Asks several sources in order; the first that has the key answers. A source that is out of reach stops the search
 *  only when no later one has the key either. */
export function combineKeys(...sources: readonly KeySource[]): KeySource {
  return {
    findKey: (query) => findInOrder(sources, query),
    generation: () => combinedGeneration(sources),
  };
}

async function findInOrder(sources: readonly KeySource[], query: KeyQuery): Promise<VerificationKey | null> {
  const outages: unknown[] = [];
  for (const source of sources) {
    try {
      const key = await source.findKey(query);
      if (key) return key;
    } catch (error) {
      outages.push(error);
    }
  }
  if (outages.length > 0) throw outages[0];
  return null;
}

/** Sums what only ever grows: the sum changes when any part does. */
function combinedGeneration(sources: readonly KeySource[]): number | null {
  let sum = 0;
  for (const source of sources) {
    const generation = source.generation?.() ?? null;
    if (generation === null) return null;
    sum += generation;
  }
  return sum;
}
