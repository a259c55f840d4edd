import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readTaskConnections, saveTaskConnections } from './task-connections.ts';

describe('the task service’s connections', () => {
  const folder = mkdtempSync(join(tmpdir(), 'connections-'));
  afterAll(() => rmSync(folder, { recursive: true }));

  it('are noted without the service’s other secrets, for their owner only', () => {
    expect(readTaskConnections(folder)).toBeNull();
    const connections = { DATABASE_URL: 'a', RABBITMQ_MAIN_URL: 'b', RABBITMQ_SCHEDULING_URL: 'c' };
    saveTaskConnections(folder, { ...connections, CURSOR_HMAC_KEY: 'secret' });
    expect(readTaskConnections(folder)).toEqual(connections);
    expect(statSync(join(folder, 'task-connections.json')).mode & 0o777).toBe(0o600);
  });
});
