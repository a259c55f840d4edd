import { ALL_PERSONAS, Persona } from '@platform/personas';
import {
  applicationSecretPurpose,
  decodeAuthenticationCode,
  isFreshTimestamp,
  isProven,
  mayHaveAdministrators,
  mayUseFlow,
} from './application';
import type { Application } from './application';

const bytes = (text: string): Buffer => Buffer.from(text);

describe('application proof', () => {
  it('matches any live secret, of any length', () => {
    const live = ['new', 'an older one', 'the oldest'].map(bytes);
    for (const given of live) expect(isProven({ given }, live)).toBe(true);
    expect(isProven({ given: bytes('other') }, live)).toBe(false);
    expect(
      isProven({ given: bytes('wen'), expectedOf: (secret) => Buffer.from(secret).reverse() }, live),
    ).toBe(true);
  });

  it.each<[string, readonly Buffer[]]>([
    ['no secret', []],
    ['an empty secret', [bytes('')]],
  ])('never matches %s', (_, live) => {
    for (const given of ['', 'dummy', 'dummy'.repeat(9).slice(0, 44)].map(bytes))
      expect(isProven({ given }, live)).toBe(false);
    // The stand-in for the missing secret does not match either, whatever its value.
    const seen: Buffer[] = [];
    isProven({ given: bytes(''), expectedOf: (secret) => (seen.push(secret), secret) }, live);
    for (const given of seen) expect(isProven({ given }, live)).toBe(false);
    expect(isProven({ given: bytes('same'), expectedOf: () => bytes('same') }, live)).toBe(false);
  });

  it.each([0, 1, 2])('makes the same number of comparisons with %i secrets', (count) => {
    const expectedOf = jest.fn((secret: Buffer) => secret);
    isProven(
      { given: bytes('x'), expectedOf },
      Array.from({ length: count }, () => bytes('secret')),
    );
    expect(expectedOf).toHaveBeenCalledTimes(2);
  });

  it('accepts only the canonical spelling of a code', () => {
    expect(decodeAuthenticationCode('z/1wgDYJIFs+qhevH6rV/uJS7zDRHpL2+8zoye6ZBeg=')).toHaveLength(32);
    expect(decodeAuthenticationCode('z/1wgDYJIFs+qhevH6rV/uJS7zDRHpL2+8zoye6ZBeg')).toBeNull();
    expect(decodeAuthenticationCode('z_1wgDYJIFs-qhevH6rV_uJS7zDRHpL2-8zoye6ZBeg=')).toBeNull();
    expect(decodeAuthenticationCode(' z/1wgDYJIFs+qhevH6rV/uJS7zDRHpL2+8zoye6ZBeg=')).toBeNull();
  });

  it('accepts timestamps up to 300 s away, before or after', () => {
    const now = new Date('2026-01-05T10:00:00Z');
    expect(isFreshTimestamp(new Date('2026-01-05T09:55:00Z'), now)).toBe(true);
    expect(isFreshTimestamp(new Date('2026-01-05T10:05:00Z'), now)).toBe(true);
    expect(isFreshTimestamp(new Date('2026-01-05T09:54:59.999Z'), now)).toBe(false);
    expect(isFreshTimestamp(new Date('2026-01-05T10:05:00.001Z'), now)).toBe(false);
  });
});

describe('an application', () => {
  const application = (overrides: Partial<Application> = {}): Application => ({
    applicationKey: 'app',
    allowedPersonas: Persona.Customer,
    allowAdministrators: false,
    allowRefresh: false,
    confidential: false,
    allowedFlows: ['password', 'refresh'],
    allowedSubjects: null,
    ...overrides,
  });

  it('may act for administrators only if allowed explicitly or for every persona; without an application there is no limit', () => {
    expect(mayHaveAdministrators(application())).toBe(false);
    expect(mayHaveAdministrators(application({ allowedPersonas: ALL_PERSONAS - Persona.Owner }))).toBe(false);
    expect(mayHaveAdministrators(application({ allowAdministrators: true }))).toBe(true);
    expect(mayHaveAdministrators(application({ allowedPersonas: ALL_PERSONAS }))).toBe(true);
    expect(mayHaveAdministrators(null)).toBe(true);
  });

  it('uses only the flows that it is permitted', () => {
    expect(mayUseFlow(application(), 'password')).toBe(true);
    expect(mayUseFlow(application(), 'trust')).toBe(false);
    expect(mayUseFlow(application({ allowedFlows: [] }), 'password')).toBe(false);
  });

  it('has a sealing purpose of its own', () => {
    expect(applicationSecretPurpose('one')).not.toBe(applicationSecretPurpose('other'));
  });
});
