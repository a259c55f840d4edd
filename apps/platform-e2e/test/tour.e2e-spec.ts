import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { localUrl, type PlatformSettings } from '#platform/environments.ts';
import { NEIGHBOURS, SERVICE_NAMES, type ServiceName } from '#platform/programs.ts';
import type { Variables } from '#platform/state-folder.ts';
import type { TestPlatform } from '#platform/test-platform.ts';
import { findLeaks } from '@platform/testing';
import { knownSecrets, rejectedMessages, startPlatform, tour as walk } from '../src/platform';
import { RecordingProxy } from '../src/recording-proxy';

/** Time for starting seven processes and running the tour on a machine with two cores. */
const JOURNEY_TIMEOUT_MS = 90_000;

const WRONG_PASSWORD = 'not-the-password-of-anybody';
const WRONG_SECRET = 'not-the-secret-of-any-application';

describe('the tour', () => {
  let platform: TestPlatform;
  /**
   * All clients, including the services themselves, reach the services through these proxies, which record
   * every secret used.
   */
  let proxies: Record<ServiceName, RecordingProxy>;
  const tourOutputs: string[] = [];

  beforeAll(async () => {
    const variables = async ({ ports }: PlatformSettings): Promise<Variables> => {
      const proxy = (name: ServiceName) => RecordingProxy.start(localUrl(ports[name]));
      proxies = { auth: await proxy('auth'), settings: await proxy('settings'), task: await proxy('task') };
      const { url } = proxies.auth;
      // Log level trace, so that secrets are not just hidden by the log level.
      const callback = `${url}/auth/token/openId`;
      return {
        AUTH_SERVICE_URL: url,
        OPENID_REDIRECT_URI: callback,
        REDIRECT_URIS: callback,
        LOG_LEVEL: 'trace',
      };
    };
    platform = await startPlatform({ variables });
  }, JOURNEY_TIMEOUT_MS);

  afterAll(async () => {
    await platform.stop();
    await Promise.all(SERVICE_NAMES.map((name) => proxies[name].stop()));
  }, JOURNEY_TIMEOUT_MS);

  async function tour(overrides: Variables = {}) {
    const result = await walk(platform, {
      AUTH_URL: proxies.auth.url,
      SETTINGS_URL: proxies.settings.url,
      TASK_URL: proxies.task.url,
      ...overrides,
    });
    tourOutputs.push(result.output);
    return result;
  }

  it(
    'passes, and passes again on the same data',
    async () => {
      for (let walk = 1; walk <= 2; walk += 1) {
        const { exitCode, output } = await tour();
        expect({ walk, exitCode, output }).toMatchObject({ exitCode: 0 });
        expect(await rejectedMessages(platform)).toEqual([]);
        expect(output).toMatch(/All \d+ steps went as the tour says, in \d+\.\d s\.\s*$/);
      }
    },
    JOURNEY_TIMEOUT_MS,
  );

  it('matches the excerpt in the README', async () => {
    const readme = await readFile(join(__dirname, '../../../README.md'), 'utf8');
    const [, excerpt = ''] = /\n## The tour\n[\s\S]*?```\n([\s\S]*?)```/.exec(readme) ?? [];
    const steps = excerpt.match(/^ *\d+ {2}\S.*$/gm) ?? [];
    expect(steps.length).toBeGreaterThan(2);
    expect(tourOutputs[0]?.split('\n').map((line) => line.trim())).toEqual(
      expect.arrayContaining(steps.map((step) => step.trim())),
    );
  });

  it('shows no token, password or secret, and no colours without a terminal', async () => {
    const { output } = await tour();
    expect(output).not.toMatch(/eyJ[\w-]+\.[\w-]+\.[\w-]+/);
    expect(output).not.toContain('Demo-Passw0rd!');
    expect(output).not.toContain(encodeURIComponent('Demo-Passw0rd!'));
    expect(output).not.toContain('demo-backend-secret');
    expect(output).not.toMatch(/cookie: [^…]/);
    expect(output).not.toMatch(/\bcode=[^…]/);
    expect(output).not.toContain('\u001b[');
  });

  it('fails at the step with a wrong password, with the expected and the actual status', async () => {
    const { exitCode, output } = await tour({ TOUR_PASSWORD: WRONG_PASSWORD });
    expect(exitCode).toBe(1);
    expect(output).toMatch(/the status is not as expected\s+expected +200\s+actual +401/);
    expect(output).toMatch(/Step 4 is not as the tour says\./);
  });

  it('fails when a backend signs with the wrong secret', async () => {
    const { exitCode, output } = await tour({ TOUR_BACKEND_SECRET: WRONG_SECRET });
    expect(exitCode).toBe(1);
    expect(output).toContain('signs a request');
    expect(output).toMatch(/expected +200\s+actual +401/);
  });

  it('stops every neighbour on SIGTERM with exit code 0', async () => {
    // The events of the last tour have been delivered, and no later test needs a neighbour.
    const neighbours = NEIGHBOURS.map(({ port }) => platform.programAt(platform.url(port)));
    expect(await Promise.all(neighbours.map((neighbour) => neighbour.stop()))).toEqual([0, 0, 0, 0]);
  });

  it('fails and names the address when a service has been stopped', async () => {
    await platform.programAt(platform.url('settings')).stop();
    const { exitCode, output } = await tour({ SETTINGS_URL: platform.url('settings') });
    expect(exitCode).toBe(1);
    expect(output).toContain(`${platform.url('settings')} is not as expected`);
    expect(output).toContain('ECONNREFUSED');
  });

  it('leaves no secret, password, code or token of these tours in any log', async () => {
    // Stops the services first, because lines written while stopping count too.
    await Promise.all(
      SERVICE_NAMES.filter((name) => name !== 'settings').map((name) =>
        platform.programAt(platform.url(name)).stop(),
      ),
    );
    const used = new Map(SERVICE_NAMES.flatMap((name) => [...proxies[name].secrets]));
    const kinds = new Set(used.values());
    for (const kind of [
      'accessToken',
      'refreshToken',
      'authenticationCode',
      'client_secret',
      'password',
      'settingValue',
      'code',
      'cookie',
    ])
      expect(kinds).toContain(kind);
    const secrets = new Map([
      ...used,
      ...knownSecrets(platform),
      [WRONG_PASSWORD, 'wrong password'],
      [WRONG_SECRET, 'wrong shared secret'],
    ]);
    const logs = platform.logs();
    expect(logs.size).toBeGreaterThanOrEqual(2 * SERVICE_NAMES.length + 1 + NEIGHBOURS.length);
    for (const name of SERVICE_NAMES)
      expect([...logs].find(([program]) => program.startsWith(`${name}-service`))?.[1]).toMatch(/request/);
    expect(findLeaks(secrets, logs)).toEqual([]);
    // The tour's own output may show setting values, like all responses, and the used state and nonce of
    // sign-ins.
    const shown: readonly string[] = ['settingValue', 'state', 'nonce'];
    const hidden = new Map([...secrets].filter(([, kind]) => !shown.includes(kind)));
    expect(findLeaks(hidden, new Map([['the tour', tourOutputs.join('\n')]]))).toEqual([]);
  });
});
