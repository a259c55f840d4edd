import { join } from 'node:path';
import { render } from '#manifests/renderings.ts';
import { secretsOf } from './servers.ts';

const addresses = (name: string) => ({ owner: `owner of ${name}`, app: `app of ${name}` });
const STAGE = {
  suffix: '-test',
  databases: { auth: addresses('auth'), settings: addresses('settings'), task: addresses('task') },
  busUrl: 'amqp://broker',
};

describe('secretsOf the production overlay', () => {
  const prepared = render(join(__dirname, '../..'), 'k8s/overlays/production/prepare');
  const secrets = secretsOf(prepared, STAGE);

  it('contains the database of each service, and the owner’s URL for migrations', () => {
    expect(secrets.get('task-service-secrets/DATABASE_URL')).toBe('app of task');
    expect(secrets.get('task-service-migration-secrets/MIGRATION_DATABASE_URL')).toBe('owner of task');
    expect(secrets.get('task-service-secrets/RABBITMQ_MAIN_URL')).toBe('amqp://broker');
  });

  it('has equal values for equal remote references, and different ones for others', () => {
    const key = secrets.get('auth-service-secrets/ACCESS_TOKEN_HMAC_KEY');
    expect(secrets.get('task-service-secrets/ACCESS_TOKEN_HMAC_KEY')).toBe(key);
    expect(secrets.get('auth-service-secrets/REFRESH_TOKEN_HMAC_KEY')).not.toBe(key);
  });

  it('omits keys that the example does not declare', () => {
    expect(secrets.get('auth-service-secrets/LEGACY_ISSUERS')).toBeUndefined();
  });
});
