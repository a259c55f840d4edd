import { createHmac, generateKeyPairSync, sign } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

type Claims = Record<string, unknown>;
interface Reply {
  status?: number;
  headers?: Record<string, string>;
  body?: unknown;
}

/** The provider's behaviour at its token endpoint. */
export interface Behaviour {
  claims?: Claims;
  header?: Record<string, unknown>;
  /** The key that signs. Default: the published one. */
  key?: KeyObject;
  /** Replaces the signed ID token. */
  idToken?: (signed: string, claims: Claims) => string | undefined;
  /** Replaces the token response. */
  reply?: Reply;
  /** Keeps the connection open without a response. */
  hangs?: boolean;
}

const KID = 'key-1';

/** An OpenID provider with faults that `oidc-provider` cannot simulate. */
export class MisbehavingProvider {
  readonly key = generateKeyPairSync('rsa', { modulusLength: 2048 });
  behaviour: Behaviour = {};
  /** Replacements for the responses with the metadata and the keys. Null: the normal response. */
  metadata: ((normal: Claims) => Reply) | null = null;
  keys: Reply | null = null;
  /** Paths requested so far. */
  readonly requests: string[] = [];
  /** Fields of the last token request. */
  tokenRequest = new URLSearchParams();
  nonce = '';
  clientSecret = '';

  private constructor(private readonly server: Server) {}

  static async start(): Promise<MisbehavingProvider> {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const provider = new MisbehavingProvider(server);
    server.on('request', (request, response) => void provider.handle(request, response));
    return provider;
  }

  get issuer(): string {
    return `http://127.0.0.1:${String((this.server.address() as AddressInfo).port)}`;
  }

  async stop(): Promise<void> {
    const closed = once(this.server, 'close');
    this.server.close();
    this.server.closeAllConnections();
    await closed;
  }

  private async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url!;
    this.requests.push(path);
    if (path === '/token') {
      const chunks = await request.toArray();
      this.tokenRequest = new URLSearchParams(Buffer.concat(chunks as Buffer[]).toString());
      if (this.behaviour.hangs === true) return;
    }
    const { status = 200, headers = { 'content-type': 'application/json' }, body } = this.replyTo(path);
    response.writeHead(status, headers);
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  }

  private replyTo(path: string): Reply {
    if (path === '/.well-known/openid-configuration')
      return this.metadata?.(this.normal()) ?? { body: this.normal() };
    if (path === '/jwks') return this.keys ?? { body: { keys: [this.published()] } };
    if (path === '/token') return this.behaviour.reply ?? { body: this.tokens() };
    return { status: 404, body: {} };
  }

  private normal(): Claims {
    const { issuer } = this;
    return {
      issuer,
      authorization_endpoint: `${issuer}/authorize`,
      token_endpoint: `${issuer}/token`,
      jwks_uri: `${issuer}/jwks`,
      response_types_supported: ['code'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['RS256', 'HS256', 'none'],
      token_endpoint_auth_methods_supported: ['client_secret_post'],
      claims_supported: ['iss', 'sub', 'auth_time'],
      authorization_response_iss_parameter_supported: true,
    };
  }

  private published(): Claims {
    return { ...this.key.publicKey.export({ format: 'jwk' }), kid: KID, alg: 'RS256', use: 'sig' };
  }

  private tokens(): Claims {
    const {
      claims = {},
      header = {},
      key = this.key.privateKey,
      idToken = (signed) => signed,
    } = this.behaviour;
    const now = Math.floor(Date.now() / 1_000);
    const all = {
      iss: this.issuer,
      sub: 'external-carl',
      aud: 'auth-service',
      iat: now,
      exp: now + 300,
      auth_time: now,
      nonce: this.nonce,
      ...claims,
    };
    const text = `${encode({ alg: 'RS256', kid: KID, ...header })}.${encode(all)}`;
    const signed = `${text}.${sign('sha256', Buffer.from(text), key).toString('base64url')}`;
    return { access_token: 'opaque', token_type: 'Bearer', expires_in: 60, id_token: idToken(signed, all) };
  }
}

/** Returns a token without a signature. */
export function unsigned(claims: Claims): string {
  return `${encode({ alg: 'none' })}.${encode(claims)}.`;
}

/** Returns a token signed with a shared secret. */
export function macSigned(claims: Claims, secret: string): string {
  const text = `${encode({ alg: 'HS256', kid: KID })}.${encode(claims)}`;
  return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`;
}

function encode(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}
