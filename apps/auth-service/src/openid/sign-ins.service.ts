import { createHash, randomBytes } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import type { DataSource } from 'typeorm';
import { AUTH_CONFIG } from '../config';
import type { AuthConfig } from '../config';
import { openSecret, sealSecret } from '../keys/secret-box';
import type { SignInSecrets } from './identity-provider.client';
import { insertSignIn } from './insert-sign-in.query';
import { takeSignIn } from './take-sign-in.query';

/** A sign-in that its own browser has come back with. */
export interface ResumedSignIn extends SignInSecrets {
  applicationKey: string | null;
}

/** Sign-ins under way: started on one replica, completed on any, once, by the browser that started them. */
@Injectable()
export class SignIns {
  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    @Inject(AUTH_CONFIG) private readonly config: AuthConfig,
  ) {}

  /** New secrets for one sign-in. */
  create(): SignInSecrets {
    return { state: randomSecret(), nonce: randomSecret(), codeVerifier: randomSecret() };
  }

  /** The secret of a browser that has none yet. */
  createBrowserSecret(): string {
    return randomSecret();
  }

  async store(secrets: SignInSecrets, browserSecret: string, applicationKey: string | null): Promise<void> {
    const { state, nonce, codeVerifier } = secrets;
    const stateHash = sha256(state);
    const plain = Buffer.from(JSON.stringify([nonce, codeVerifier]));
    const sealedSecrets = sealSecret(this.config.SECRET_ENCRYPTION_KEY, purposeOf(stateHash), plain);
    await insertSignIn(this.dataSource, {
      stateHash,
      browserHash: sha256(browserSecret),
      sealedSecrets,
      applicationKey,
    });
  }

  /** The sign-in with this state, which is used up by it. Null when it is unknown, expired, used before or another browser's. */
  async resume(state: string, browserSecret: string): Promise<ResumedSignIn | null> {
    const stateHash = sha256(state);
    const taken = await takeSignIn(this.dataSource, { stateHash, browserHash: sha256(browserSecret) });
    if (taken === null) return null;
    const key = this.config.SECRET_ENCRYPTION_KEY;
    const plain = openSecret(key, purposeOf(stateHash), taken.sealedSecrets).toString();
    const [nonce, codeVerifier] = JSON.parse(plain) as [string, string];
    return { state, nonce, codeVerifier, applicationKey: taken.applicationKey };
  }
}

/** 32 bytes in base64url: what OAuth asks of states, nonces and PKCE verifiers alike. */
function randomSecret(): string {
  return randomBytes(32).toString('base64url');
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** What a sealed sign-in is bound to. */
function purposeOf(stateHash: Buffer): string {
  return `openid-sign-in:${stateHash.toString('base64url')}`;
}
