import { NEIGHBOUR_NAMES } from '../src/environments';
import { Platform } from '../src/platform';

/** Starting seven processes, and walking, on a machine with two cores. */
const JOURNEY_TIMEOUT_MS = 90_000;

describe('the tour', () => {
  let platform: Platform;

  beforeAll(async () => {
    platform = await Platform.start();
  }, JOURNEY_TIMEOUT_MS);

  afterAll(() => platform.stop(), JOURNEY_TIMEOUT_MS);

  it(
    'passes, and passes again on the same data',
    async () => {
      for (let walk = 1; walk <= 2; walk += 1) {
        const { exitCode, output } = await platform.tour();
        expect({ walk, exitCode, output }).toMatchObject({ exitCode: 0 });
        expect(await platform.rejectedMessages()).toEqual([]);
        expect(output).toMatch(/All \d+ steps went as the tour says, in \d+\.\d s\.\s*$/);
      }
    },
    JOURNEY_TIMEOUT_MS,
  );

  it('shows no token, password or secret, and no colours where there is no terminal', async () => {
    const { output } = await platform.tour();
    expect(output).not.toMatch(/eyJ[\w-]+\.[\w-]+\.[\w-]+/);
    expect(output).not.toContain('Demo-Passw0rd!');
    expect(output).not.toContain(encodeURIComponent('Demo-Passw0rd!'));
    expect(output).not.toContain('demo-backend-secret');
    expect(output).not.toMatch(/cookie: [^…]/);
    expect(output).not.toMatch(/\bcode=[^…]/);
    expect(output).not.toContain('\u001b[');
  });

  it('fails at the step where a password is wrong, with what it expected and what came', async () => {
    const { exitCode, output } = await platform.tour({ TOUR_PASSWORD: 'not the password' });
    expect(exitCode).toBe(1);
    expect(output).toMatch(/the status is not as expected\s+expected +200\s+actual +401/);
    expect(output).toMatch(/Step 4 is not as the tour says\./);
  });

  it('fails when a backend signs with the wrong secret', async () => {
    const { exitCode, output } = await platform.tour({ TOUR_BACKEND_SECRET: 'not the secret' });
    expect(exitCode).toBe(1);
    expect(output).toContain('signs a request');
    expect(output).toMatch(/expected +200\s+actual +401/);
  });

  it('lets every neighbour go on SIGTERM with exit code 0', async () => {
    // The last walk's events are delivered by then; nobody after this needs a neighbour.
    const neighbours = NEIGHBOUR_NAMES.map((name) => platform.replicaAt(platform.url(name)));
    expect(await Promise.all(neighbours.map((neighbour) => neighbour.stop()))).toEqual([0, 0, 0, 0]);
  });

  it('fails and names the address when a service has been stopped', async () => {
    await platform.replicaAt(platform.url('settings')).stop();
    const { exitCode, output } = await platform.tour();
    expect(exitCode).toBe(1);
    expect(output).toContain(`${platform.url('settings')} is not as expected`);
    expect(output).toContain('ECONNREFUSED');
  });
});
