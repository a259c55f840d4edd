import { join } from 'node:path';
import { render } from '#manifests/renderings.ts';
import { secretsOf } from './secrets.ts';

const addresses = (name: string) => ({ owner: `owner of ${name}`, app: `app of ${name}` });
const STAGE = {
  suffix: '-test',
  databases: { auth: addresses('auth'), settings: addresses('settings'), task: addresses('task') },
  busUrl: 'amqp://broker',
};

describe('secretsOf the production overlay', () => {
  const prepared = render(join(__dirname, '../..'), 'k8s/overlays/production/prepare');
  const secretOf = secretsOf(prepared, STAGE);

  it('gives each service its own database, and migrations the owner’s', () => {
    expect(secretOf('task-service-secrets', 'DATABASE_URL')).toBe('app of task');
    expect(secretOf('task-service-migration-secrets', 'MIGRATION_DATABASE_URL')).toBe('owner of task');
    expect(secretOf('task-service-secrets', 'RABBITMQ_MAIN_URL')).toBe('amqp://broker');
  });

  it('gives one value to what comes from one place, and different ones to the rest', () => {
    const key = secretOf('auth-service-secrets', 'ACCESS_TOKEN_HMAC_KEY');
    expect(secretOf('task-service-secrets', 'ACCESS_TOKEN_HMAC_KEY')).toBe(key);
    expect(secretOf('auth-service-secrets', 'REFRESH_TOKEN_HMAC_KEY')).not.toBe(key);
  });

  it('knows no key that the example leaves out', () => {
    expect(secretOf('auth-service-secrets', 'LEGACY_ISSUERS')).toBeUndefined();
  });
});
