// The published types of passport-jwt depend on Express and eleven more packages. This file declares only
// what the strategy uses of version 4.
declare module 'passport-jwt' {
  import type { KeyObject } from 'node:crypto';
  import type { Algorithm, VerifyOptions } from 'jsonwebtoken';

  export type SecretOrKeyProvider<Request> = (
    request: Request,
    rawJwtToken: string,
    done: (error: unknown, secretOrKey?: KeyObject) => void,
  ) => void;

  export interface StrategyOptions<Request> {
    jwtFromRequest: (request: Request) => string | null;
    secretOrKeyProvider: SecretOrKeyProvider<Request>;
    algorithms?: Algorithm[];
    jsonWebTokenOptions?: VerifyOptions;
    ignoreExpiration?: boolean;
    passReqToCallback?: boolean;
  }

  export const ExtractJwt: { fromAuthHeaderAsBearerToken(): (request: unknown) => string | null };

  export class Strategy {
    constructor(options: StrategyOptions<never>, verify: (...args: unknown[]) => unknown);
    readonly name: string;
  }
}
