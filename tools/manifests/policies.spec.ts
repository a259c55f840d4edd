import { join } from 'node:path';
import { bytesOf, title } from './kubernetes-object.ts';
import { policyProblems } from './policies.ts';
import { EVERYTHING, renderAll } from './renderings.ts';
import { missingSecretKeys } from './secrets.ts';
import { NETWORK, PODS, REFERENCES, ROLLOUTS, SECRETS, withFault } from './test/faults.ts';
const WORKSPACE = join(__dirname, '../..');
const RENDERINGS = renderAll(WORKSPACE);
const ALL = RENDERINGS.find(({ folder }) => folder === EVERYTHING)?.objects ?? [];

describe('the policies', () => {
  it.each(RENDERINGS)('are met by $folder', ({ objects }) => {
    expect(policyProblems(objects)).toEqual([]);
  });

  it.each([...PODS, ...ROLLOUTS, ...REFERENCES, ...NETWORK, ...SECRETS])(
    'refuse %s',
    (_what, object, at, value, message) => {
      const problems = policyProblems(withFault(ALL, object, at, value));
      expect(problems).toContainEqual(expect.stringContaining(message));
    },
  );

  it('refuses a quantity that it cannot parse', () => {
    expect(bytesOf('1.5Gi')).toBe(1.5 * 2 ** 30);
    expect(() => bytesOf('512 MB')).toThrow(RangeError);
  });
});

describe('the rate limits of token requests', () => {
  const production = RENDERINGS.find(({ folder }) => folder === 'k8s/overlays/production')?.objects ?? [];
  const CONFIG = 'ConfigMap/auth-service-config';
  const configured = production.find((object) => title(object).startsWith(CONFIG));

  it.each(['TOKEN_RATE_LIMIT_PER_ADDRESS', 'TOKEN_RATE_LIMIT_PER_APPLICATION', 'TRUSTED_PROXIES'])(
    'are set in production: %s',
    (name) => expect(configured?.data).toMatchObject({ [name]: expect.stringMatching(/^[1-9]/) }),
  );

  it('need TRUSTED_PROXIES, to count clients instead of the proxy in front', () => {
    const spoilt = withFault(production, CONFIG, 'data.TRUSTED_PROXIES', undefined);
    expect(policyProblems(spoilt)).toContainEqual(expect.stringContaining('needs TRUSTED_PROXIES'));
  });
});

describe('the secrets', () => {
  const production = RENDERINGS.filter(({ folder }) => folder.startsWith('k8s/overlays/production'));
  const externalSecrets = production.flatMap(({ objects }) => objects);

  it('are all produced by the production example', () => {
    expect(missingSecretKeys(externalSecrets, externalSecrets)).toEqual([]);
    expect(missingSecretKeys(ALL, ALL)).toEqual([]);
  });

  it('are reported if nothing produces them', () => {
    const secret = 'ExternalSecret/task-service-secrets';
    const spoilt = withFault(externalSecrets, secret, 'spec.data.0.secretKey', 'DATABASE_ADDRESS');
    expect(new Set(missingSecretKeys(spoilt, spoilt))).toEqual(
      new Set(
        ['Job/task-service-migrate', 'CronJob/task-service-administration', 'Deployment/task-service'].map(
          (object) => `${object}: nothing produces task-service-secrets/DATABASE_URL`,
        ),
      ),
    );
  });
});
