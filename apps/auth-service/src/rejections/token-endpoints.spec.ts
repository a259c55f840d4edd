import { findTokenFlow } from './token-endpoints';

describe('findTokenFlow', () => {
  it.each([
    ['/auth/token/refresh', 'refresh'],
    ['/AUTH/Token/User/?grantAsInternalPartner=true', 'password'],
    ['/auth/token/trust', 'trust'],
    ['/auth/token/trust-simple/', 'trust-simple'],
    ['/auth/token/bearer?bearerTokenOverride=x', 'bearer'],
  ])('maps %s to %s', (url, flow) => {
    expect(findTokenFlow('POST', url)).toBe(flow);
  });

  it.each(['GET', 'HEAD'])('maps %s of the Windows endpoint to windows', (method) => {
    expect(findTokenFlow(method, '/auth/token/user/WinAuth/?x=1')).toBe('windows');
  });

  it.each([
    ['POST', '/auth/token/openId'],
    ['POST', '/auth/token/user/AzureADLogOn'],
    ['GET', '/auth/token/sso/initiate/?x=1'],
    ['HEAD', '/auth/token/SSO/initiate'],
  ])('maps %s %s to openid', (method, url) => {
    expect(findTokenFlow(method, url)).toBe('openid');
  });

  it.each([
    ['GET', '/auth/token/refresh'],
    ['POST', '/auth/token/user/winauth'],
    ['POST', '/auth/token/sso/initiate'],
    ['PUT', '/auth/token/openId'],
    ['POST', '/auth/token/unknown'],
    ['POST', '/auth/revocations'],
  ])('returns null for %s %s', (method, url) => {
    expect(findTokenFlow(method, url)).toBeNull();
  });
});
