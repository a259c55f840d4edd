import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ManualClock } from '@platform/time';
import { ec, ISSUER, rsa } from '../../test/token-builder';
import { TokenVerificationUnavailableError } from '../token/access-token-error';
import { authServiceKeys, JwksKeys } from './jwks';
import type { KeyQuery } from './keys';

const ecJwk = { ...ec.publicKey.export({ format: 'jwk' }), kid: 'es-1', alg: 'ES256', use: 'sig' };
const rsaJwk = { ...rsa.publicKey.export({ format: 'jwk' }), kid: 'rs-1' };
const es1: KeyQuery = { kid: 'es-1', alg: 'ES256', issuer: ISSUER };
const rs1: KeyQuery = { kid: 'rs-1', alg: 'RS256', issuer: ISSUER };

describe('JwksKeys', () => {
  let server: Server;
  let url: string;
  let requests: number;
  let requestedUrls: (string | undefined)[];
  let reply: { status: number; body: string } | 'silence';
  const clock = new ManualClock('2026-03-01T12:00:00Z');
  const publish = (...keys: unknown[]): void => {
    reply = { status: 200, body: JSON.stringify({ keys }) };
  };

  beforeEach(async () => {
    requests = 0;
    requestedUrls = [];
    publish(ecJwk);
    server = createServer((request, response) => {
      requests += 1;
      requestedUrls.push(request.url);
      if (reply !== 'silence') response.writeHead(reply.status).end(reply.body);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks.json`;
  });

  afterEach(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  it('reads the set once for many concurrent look-ups', async () => {
    const keys = new JwksKeys({ url, clock });
    const found = await Promise.all(Array.from({ length: 20 }, async () => keys.findKey(es1)));
    expect(found.every((key) => key?.key.equals(ec.publicKey))).toBe(true);
    expect(requests).toBe(1);
  });

  it("finds auth-service's set below the path prefix of authServiceUrl", async () => {
    const authServiceUrl = url.replace('/jwks.json', '/identity');
    expect(await authServiceKeys({ authServiceUrl, clock }).findKey(es1)).not.toBeNull();
    expect(requestedUrls).toEqual(['/identity/auth/.well-known/jwks.json']);
  });

  it('ignores keys that must not verify tokens', async () => {
    publish(
      { kty: 'oct', k: 'AAAA', kid: 'oct', alg: 'HS256' },
      { ...ecJwk, kid: 'enc', use: 'enc' },
      { ...ecJwk, kid: 'ops', key_ops: ['sign'] },
      // Wycheproof, JSON Web Signature, cases 355 and 356.
      { ...ecJwk, kid: 'ops-encrypt', key_ops: ['encrypt'] },
      { ...ecJwk, kid: 'ops-twice', key_ops: ['verify', 'verify'] },
      { ...ecJwk, kid: 'ops-text', key_ops: 'verify' },
      { ...ecJwk, kid: 'mixed', alg: 'RS256' },
      { ...ecJwk, kid: 'broken', x: 'AAAA' },
      { ...ecJwk, kid: '../path' },
      'text',
      ecJwk,
    );
    const keys = new JwksKeys({ url, clock, cooldownMs: 0 });
    expect(await keys.findKey(es1)).not.toBeNull();
    const ignored = [
      'oct',
      'enc',
      'ops',
      'ops-encrypt',
      'ops-twice',
      'ops-text',
      'mixed',
      'broken',
      '../path',
    ];
    for (const kid of ignored) {
      expect(await keys.findKey({ ...es1, kid })).toBeNull();
      expect(await keys.findKey({ ...rs1, kid })).toBeNull();
    }
    expect(await keys.findKey({ kid: 'oct', alg: 'HS256', issuer: ISSUER })).toBeNull();
  });

  it('reloads the set for an unknown key id, at most once per cooldown', async () => {
    const keys = new JwksKeys({ url, clock, cooldownMs: 5_000 });
    await keys.findKey(es1);
    publish(ecJwk, rsaJwk);
    for (let attempt = 0; attempt < 10; attempt += 1) expect(await keys.findKey(rs1)).toBeNull();
    expect(requests).toBe(1);
    clock.advance(5_000);
    expect(await keys.findKey(rs1)).not.toBeNull();
    expect(requests).toBe(2);
  });

  it('sends no request for symmetric tokens or for other issuers', async () => {
    const keys = new JwksKeys({ url, clock, issuer: ISSUER });
    expect(await keys.findKey({ ...es1, alg: 'HS256' })).toBeNull();
    expect(await keys.findKey({ ...es1, issuer: 'https://evil.test' })).toBeNull();
    expect(requests).toBe(0);
  });

  it('drops a removed key within 60 s, and reports no generation until the set is reloaded', async () => {
    const keys = new JwksKeys({ url, clock });
    await keys.findKey(es1);
    expect(keys.generation?.()).not.toBeNull();
    publish(rsaJwk);
    clock.advance(60_000);
    expect(keys.generation?.()).toBeNull();
    expect(await keys.findKey(es1)).toBeNull();
    expect(await keys.findKey(rs1)).not.toBeNull();
  });

  it('reloads in the background after 30 s, and changes its generation if the keys changed', async () => {
    const keys = new JwksKeys({ url, clock });
    await keys.findKey(es1);
    const before = keys.generation?.();
    publish(ecJwk, rsaJwk);
    clock.advance(30_000);
    expect(keys.generation?.()).toBe(before);
    expect(await keys.findKey(rs1)).not.toBeNull();
    expect(keys.generation?.()).not.toBe(before);
  });

  it('serves cached keys through an outage until maxStaleMs, then fails closed', async () => {
    const keys = new JwksKeys({ url, clock, maxStaleMs: 900_000 });
    await keys.findKey(es1);
    reply = { status: 500, body: 'no' };
    clock.advance(600_000);
    expect(await keys.findKey(es1)).not.toBeNull();
    await expect(keys.findKey(rs1)).rejects.toBeInstanceOf(TokenVerificationUnavailableError);
    clock.advance(300_001);
    await expect(keys.findKey(es1)).rejects.toBeInstanceOf(TokenVerificationUnavailableError);
    publish(ecJwk);
    clock.advance(5_000);
    expect(await keys.findKey(es1)).not.toBeNull();
  });

  it.each([
    ['a body that is not JSON', { status: 200, body: '<html>' }],
    ['JSON that is not a JWK Set', { status: 200, body: '{"keys":1}' }],
    ['a set over 256 KiB', { status: 200, body: JSON.stringify({ keys: ['x'.repeat(300_000)] }) }],
    ['no response', 'silence' as const],
  ])('is unavailable when the address returns %s', async (_title, given) => {
    reply = given;
    const keys = new JwksKeys({ url, clock: new ManualClock(new Date(0)), timeoutMs: 200 });
    await expect(keys.findKey(es1)).rejects.toBeInstanceOf(TokenVerificationUnavailableError);
  });
});
