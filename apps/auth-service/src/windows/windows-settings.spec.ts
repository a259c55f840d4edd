import { z } from 'zod';
import { missingWindowsSettings, windowsSettings } from '../config';

const schema = z.object(windowsSettings);

describe('missingWindowsSettings', () => {
  it('needs nothing while Windows authentication is off, which is the default', () => {
    expect(schema.parse({}).WINDOWS_AUTHENTICATION).toBe('off');
    expect(missingWindowsSettings(schema.parse({}))).toEqual([]);
  });

  it.each([
    ['negotiate', ['WINDOWS_REALM', 'WINDOWS_SERVICE_PRINCIPAL', 'KRB5_KTNAME']],
    ['trusted-header', ['WINDOWS_REALM', 'WINDOWS_PROXY_SECRET']],
  ])('%s needs %j', (mode, missing) => {
    expect(missingWindowsSettings(schema.parse({ WINDOWS_AUTHENTICATION: mode }))).toEqual(missing);
  });

  it.each([
    [{ WINDOWS_SERVICE_PRINCIPAL: 'HTTP/auth.corp.test@CORP.TEST' }],
    [{ WINDOWS_PROXY_SECRET: 'too short' }],
    [{ WINDOWS_PROXY_USER_HEADER: 'not a header' }],
    [{ WINDOWS_AUTHENTICATION: 'on' }],
  ])('refuses %j', (environment) => {
    expect(schema.safeParse(environment).success).toBe(false);
  });
});
