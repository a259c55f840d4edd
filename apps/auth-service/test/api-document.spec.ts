import { signTrustRequest } from '@platform/auth-client';
import { loadConfig } from '@platform/service-defaults';
import { describeApiDocument } from '@platform/testing';
import { authConfigSchema } from '../src/config';
import { authService } from '../src/service-definition';
import { TRUST_EXAMPLES } from '../src/token/flows/trust.flow';
import { testEnvironment } from './auth-fixture';

const USAGE = `
type User = operations['signInWithPassword'];
export const request: User['requestBody']['content']['application/json'] = { user: 'ivy.internal', password: 'secret' };
type TokenResponse = components['schemas']['TokenResponse'];
export const tokenOf = ({ wasSuccessful, accessToken }: TokenResponse): string | null => (wasSuccessful ? accessToken : null);
export const rejected = (answer: User['responses'][401]['content']['application/json']): boolean => answer.rejectionReason === 1;
type Revocations = paths['/auth/revocations']['get']['responses'][200]['content']['application/json'];
export const domains = (revocations: Revocations): string[] => revocations.map(({ domain }) => domain);
`;

describeApiDocument(
  () => authService(loadConfig(authConfigSchema, testEnvironment('postgres://127.0.0.1/none'))),
  USAGE,
);

describe('the examples of the trust flow', () => {
  const secret = 'kP3v9QmX7cT1wZ5yB8nR2sL6dF4hJ0gA-_uEiOaYtCs';
  it.each(Object.entries(TRUST_EXAMPLES))('%s: has a valid signature', (_name, { value }) => {
    const { authenticationCode, requestTimestampUtc, ...request } = value;
    const signed = signTrustRequest({ ...request, requestTimestampUtc }, secret);
    expect(signed).toBe(authenticationCode);
  });
});
