import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readAdministration, saveAdministration } from './administration.ts';

describe('what administering the auth service takes', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'administration-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it('is kept for its owner alone, and nothing else with it', () => {
    const needed = {
      DATABASE_URL: 'postgres://app',
      MIGRATION_DATABASE_URL: 'postgres://owner',
      SECRET_ENCRYPTION_KEY: 'key',
    };
    saveAdministration(folder, { ...needed, REFRESH_TOKEN_HMAC_KEY: 'other' });
    expect(readAdministration(folder)).toEqual(needed);
    expect(statSync(join(folder, 'administration.json')).mode & 0o777).toBe(0o600);
  });

  it('is empty before the first start', () => {
    expect(readAdministration(folder)).toEqual({});
  });
});
