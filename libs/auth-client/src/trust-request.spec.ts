import fc from 'fast-check';
import { TrustRequestError, createTrustRequest, signTrustRequest, trustSignedText } from './index';
import type { UnsignedTrustRequest } from './index';
import vectors from '../trust-test-vectors.json';

/** Secret of the test vectors in this package's README. */
const SECRET = 'kP3v9QmX7cT1wZ5yB8nR2sL6dF4hJ0gA-_uEiOaYtCs';
const TECHNICIAN: UnsignedTrustRequest = {
  requestTimestampUtc: '2026-09-24T10:15:30.123Z',
  applicationKey: 'billing-api',
  persona: 4,
  userName: 'tech.4711',
  serviceProviderID: 815,
  name: 'Jörg Müller',
  userAccountID: null,
  personID: null,
};
const INTERNAL: UnsignedTrustRequest = {
  requestTimestampUtc: '2026-09-24T10:15:30Z',
  applicationKey: 'billing-api',
  persona: 1,
  userName: 'jdoe',
};

describe('trustSignedText', () => {
  it('is nine lines without a final line feed; an absent or null field is an empty line', () => {
    expect(trustSignedText(TECHNICIAN)).toBe(
      'TRUST-HMAC-SHA256\n2026-09-24T10:15:30.123Z\nbilling-api\n4\ntech.4711\n815\nJörg Müller\n\n',
    );
    expect(trustSignedText(INTERNAL)).toBe(
      'TRUST-HMAC-SHA256\n2026-09-24T10:15:30Z\nbilling-api\n1\njdoe\n\n\n\n',
    );
    expect(trustSignedText({ ...INTERNAL, name: null })).toBe(
      trustSignedText({ ...INTERNAL, name: undefined }),
    );
  });

  it.each(['\n', '\r', '\t', '\0', '\x1f', '\x7f', '\x85'])(
    'refuses the control character %j',
    (character) => {
      for (const field of ['requestTimestampUtc', 'applicationKey', 'userName', 'name'] as const) {
        const request = { ...TECHNICIAN, [field]: `a${character}b` };
        expect(() => trustSignedText(request)).toThrow(TrustRequestError);
      }
    },
  );

  it.each(['\ud800', '\udfff', 'a\ud83d', '\ude00a'])('refuses the lone surrogate in %j', (name) => {
    expect(() => trustSignedText({ ...TECHNICIAN, name })).toThrow('name must be well-formed Unicode');
  });

  it('accepts characters beyond the basic plane', () => {
    expect(trustSignedText({ ...TECHNICIAN, name: 'Jörg 😀' })).toContain('\nJörg 😀\n');
  });

  it.each([1.5, NaN, Infinity, 2 ** 53, -(2 ** 53)])('refuses %p as an integer', (personID) => {
    expect(() => trustSignedText({ ...TECHNICIAN, personID })).toThrow(TrustRequestError);
  });

  it('signs -0 as it is sent', () => {
    expect(trustSignedText({ ...TECHNICIAN, personID: -0 })).toBe(
      trustSignedText({ ...TECHNICIAN, personID: 0 }),
    );
  });

  it('names the field and not the value in its error', () => {
    expect(() => trustSignedText({ ...TECHNICIAN, userName: 'secret\nuser' })).toThrow(
      /^userName must not contain control characters$/,
    );
  });

  it('differs for any two different requests', () => {
    const text = fc
      .string({ unit: 'grapheme', maxLength: 4 })
      .filter((value) => !/[\p{Cc}\p{Cs}]/u.test(value));
    const optional = fc.option(fc.integer({ min: 0, max: 20 }));
    const request = fc.record({
      requestTimestampUtc: text,
      applicationKey: text,
      persona: fc.nat(31),
      userName: text,
      serviceProviderID: optional,
      name: fc.option(text.filter((value) => value !== '')),
      userAccountID: optional,
      personID: optional,
    });
    fc.assert(
      fc.property(request, request, (one, other) => {
        const sameText = trustSignedText(one) === trustSignedText(other);
        expect(sameText).toBe(JSON.stringify(one) === JSON.stringify(other));
      }),
    );
  });
});

describe('signTrustRequest', () => {
  it('matches the vectors of the README', () => {
    expect(signTrustRequest(TECHNICIAN, SECRET)).toBe('z/1wgDYJIFs+qhevH6rV/uJS7zDRHpL2+8zoye6ZBeg=');
    expect(signTrustRequest(INTERNAL, SECRET)).toBe('ibkPoC6DH/x1sRnAsGzRLZ6g75BZCqjiBwdTdqtHhG4=');
  });

  it.each(vectors.accepted)('matches the published vector: $about', (vector) => {
    expect(trustSignedText(vector.request)).toBe(vector.signedText);
    expect(signTrustRequest(vector.request, vector.sharedSecret)).toBe(vector.authenticationCode);
  });

  it.each(vectors.refused)('refuses the published vector: $because', ({ request }) => {
    expect(() => signTrustRequest(request, SECRET)).toThrow(TrustRequestError);
  });

  it('depends on the secret', () => {
    expect(signTrustRequest(INTERNAL, `${SECRET} `)).not.toBe(signTrustRequest(INTERNAL, SECRET));
  });
});

describe('createTrustRequest', () => {
  it('adds the timestamp and the code to the given fields', () => {
    const { requestTimestampUtc, ...fields } = TECHNICIAN;
    expect(createTrustRequest(fields, SECRET, new Date(requestTimestampUtc))).toEqual({
      ...TECHNICIAN,
      authenticationCode: 'z/1wgDYJIFs+qhevH6rV/uJS7zDRHpL2+8zoye6ZBeg=',
    });
  });
});
