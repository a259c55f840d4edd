import { Difference } from './difference.ts';

/** The parts of an access token that the tour looks at. */
export interface Claims {
  jti: string;
  iat: number;
  exp: number;
  personas: number;
  personId?: number;
  userId?: number;
  facilities?: number[];
  groups?: string[];
}

/** Reads a token's claims without checking its signature: that is the services' business. @throws {Difference} if it is no JWT */
export function readClaims(token: string): Claims {
  const [, payload] = token.split('.');
  if (payload === undefined) throw new Difference('the access token', 'a JWT', token);
  return JSON.parse(Buffer.from(payload, 'base64url').toString('utf8')) as Claims;
}
