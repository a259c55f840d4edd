import { findFreePorts, isPortFree } from './ports.ts';
import { openTemporaryPlace, type TemporaryPlace } from './private-servers.ts';
import { endProcess, waitUntilReady } from './supervisor.ts';

/** A server whose child, in its own process group, holds the port for 300 ms after the server has ended. */
const serverWithHeir = (port: number): string => `
  const { spawn } = require('node:child_process');
  const heir = \`require('node:net').createServer().listen(${port}, '127.0.0.1');
    process.stdin.resume().once('end', () => setTimeout(() => process.exit(), 300));\`;
  spawn(process.execPath, ['--eval', heir], { detached: true, stdio: ['pipe', 'ignore', 'inherit'] });
  setInterval(() => undefined, 1_000);`;

describe('endProcess', () => {
  let place: TemporaryPlace;
  beforeEach(async () => {
    place = await openTemporaryPlace();
  });
  afterEach(() => place.supervisor.stop());

  it('waits until the port is free, even if a child still holds it', async () => {
    const [port = 0] = await findFreePorts(1);
    const server = await place.supervisor.spawn({
      name: 'server',
      stage: 0,
      command: process.execPath,
      args: ['--eval', serverWithHeir(port)],
      env: {},
      cwd: '/',
    });
    await waitUntilReady(server, async () => !(await isPortFree(port)), 10_000);
    await endProcess(place.supervisor, 'server', 'SIGKILL', [port]);
    expect(await isPortFree(port)).toBe(true);
  });
});
