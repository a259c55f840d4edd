import { signTrustRequest } from './trust-signature.ts';

const SECRET = 'kP3v9QmX7cT1wZ5yB8nR2sL6dF4hJ0gA-_uEiOaYtCs';

describe('signTrustRequest', () => {
  it.each([
    [
      {
        requestTimestampUtc: '2026-09-24T10:15:30.123Z',
        applicationKey: 'billing-api',
        persona: 4,
        userName: 'tech.4711',
        serviceProviderID: 815,
        name: 'Jörg Müller',
        userAccountID: null,
        personID: null,
      },
      'z/1wgDYJIFs+qhevH6rV/uJS7zDRHpL2+8zoye6ZBeg=',
    ],
    [
      {
        requestTimestampUtc: '2026-09-24T10:15:30Z',
        applicationKey: 'billing-api',
        persona: 1,
        userName: 'jdoe',
      },
      'ibkPoC6DH/x1sRnAsGzRLZ6g75BZCqjiBwdTdqtHhG4=',
    ],
  ])('agrees with the published example %#', (fields, code) => {
    expect(signTrustRequest(fields, SECRET)).toBe(code);
  });
});
