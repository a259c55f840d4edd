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
  let asked: (string | undefined)[];
  let answer: { status: number; body: string } | 'silence';
  const clock = new ManualClock('2026-03-01T12:00:00Z');
  const publish = (...keys: unknown[]): void => {
    answer = { status: 200, body: JSON.stringify({ keys }) };
  };

  beforeEach(async () => {
    requests = 0;
    asked = [];
    publish(ecJwk);
    server = createServer((request, response) => {
      requests += 1;
      asked.push(request.url);
      if (answer !== 'silence') response.writeHead(answer.status).end(answer.body);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks.json`;
  });

  afterEach(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  it('reads the set once for many tokens, however many wait for it', async () => {
    const keys = new JwksKeys({ url, clock });
    const found = await Promise.all(Array.from({ length: 20 }, async () => keys.findKey(es1)));
    expect(found.every((key) => key?.key.equals(ec.publicKey))).toBe(true);
    expect(requests).toBe(1);
  });

  it("finds auth-service's set below the path that the service is published under", async () => {
    const authServiceUrl = url.replace('/jwks.json', '/identity');
    expect(await authServiceKeys({ authServiceUrl, clock }).findKey(es1)).not.toBeNull();
    expect(asked).toEqual(['/identity/auth/.well-known/jwks.json']);
  });

  it('leaves out keys that must not verify tokens', async () => {
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
    const left = ['oct', 'enc', 'ops', 'ops-encrypt', 'ops-twice', 'ops-text', 'mixed', 'broken', '../path'];
    for (const kid of left) {
      expect(await keys.findKey({ ...es1, kid })).toBeNull();
      expect(await keys.findKey({ ...rs1, kid })).toBeNull();
    }
    expect(await keys.findKey({ kid: 'oct', alg: 'HS256', issuer: ISSUER })).toBeNull();
  });

  it('asks again for an unknown key id, but not more often than the cooldown', async () => {
    const keys = new JwksKeys({ url, clock, cooldownMs: 5_000 });
    await keys.findKey(es1);
    publish(ecJwk, rsaJwk);
    for (let attempt = 0; attempt < 10; attempt += 1) expect(await keys.findKey(rs1)).toBeNull();
    expect(requests).toBe(1);
    clock.advance(5_000);
    expect(await keys.findKey(rs1)).not.toBeNull();
    expect(requests).toBe(2);
  });

  it('never asks for symmetric tokens or for issuers that are not its own', async () => {
    const keys = new JwksKeys({ url, clock, issuer: ISSUER });
    expect(await keys.findKey({ ...es1, alg: 'HS256' })).toBeNull();
    expect(await keys.findKey({ ...es1, issuer: 'https://evil.test' })).toBeNull();
    expect(requests).toBe(0);
  });

  it('no longer knows a removed key 60 s later, and vouches for none before it has asked again', async () => {
    const keys = new JwksKeys({ url, clock });
    await keys.findKey(es1);
    expect(keys.generation?.()).not.toBeNull();
    publish(rsaJwk);
    clock.advance(60_000);
    expect(keys.generation?.()).toBeNull();
    expect(await keys.findKey(es1)).toBeNull();
    expect(await keys.findKey(rs1)).not.toBeNull();
  });

  it('renews in the background half-way, changing its generation when the keys changed', async () => {
    const keys = new JwksKeys({ url, clock });
    await keys.findKey(es1);
    const before = keys.generation?.();
    publish(ecJwk, rsaJwk);
    clock.advance(30_000);
    expect(keys.generation?.()).toBe(before);
    expect(await keys.findKey(rs1)).not.toBeNull();
    expect(keys.generation?.()).not.toBe(before);
  });

  it('goes on with known keys through an outage, then fails closed', async () => {
    const keys = new JwksKeys({ url, clock, maxStaleMs: 900_000 });
    await keys.findKey(es1);
    answer = { status: 500, body: 'no' };
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
    ['no JSON', { status: 200, body: '<html>' }],
    ['no set', { status: 200, body: '{"keys":1}' }],
    ['a set beyond 256 KiB', { status: 200, body: JSON.stringify({ keys: ['x'.repeat(300_000)] }) }],
    ['nothing', 'silence' as const],
  ])('is out of reach when the address answers %s', async (_title, given) => {
    answer = given;
    const keys = new JwksKeys({ url, clock: new ManualClock(new Date(0)), timeoutMs: 200 });
    await expect(keys.findKey(es1)).rejects.toBeInstanceOf(TokenVerificationUnavailableError);
  });
});
