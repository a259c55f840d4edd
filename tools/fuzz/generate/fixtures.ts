import type { ServiceName } from '#platform/programs.ts';
import type { OpenApiDocument, Operation } from '../document.ts';
import type { PersonaName } from './personas.ts';

/** What exists on the platform under test, for requests to be about. Values differ from run to run, positions do not. */
export interface Fixtures {
  readonly operations: readonly Operation[];
  readonly documents: Readonly<Record<ServiceName, OpenApiDocument>>;
  readonly hosts: Readonly<Record<ServiceName, string>>;
  readonly scheduleIds: readonly string[];
  readonly instanceIds: readonly string[];
  readonly historyIds: readonly string[];
  /** Page keys, each of one list. */
  readonly cursors: readonly string[];
  readonly refreshTokens: readonly string[];
  /** A genuine access token of now. */
  readonly accessToken: (persona: PersonaName) => string;
  readonly forge: Forge;
}

/** What an attacker has, and what only the services have. */
export interface Forge {
  readonly issuer: string;
  readonly audience: string;
  readonly hmacKey: Buffer;
  readonly hmacKeyId: string;
  /** A genuine ES256 token. */
  readonly asymmetricToken: string;
  /** The public keys, as published. */
  readonly publicKeys: readonly (JsonWebKey & { readonly kid: string; readonly alg: string })[];
}

interface JsonWebKey {
  readonly kty: string;
  readonly [member: string]: string;
}
