import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { connect } from 'amqplib';
import { Client } from 'pg';
import { isRunning } from '../processes.ts';
import { findRunRecord, type RecordedProcess } from '../run-record.ts';
import { eventually } from '../waiting.ts';

const WORKSPACE = join(__dirname, '../../..');

interface Servers {
  readonly process: ChildProcess;
  readonly databaseUrl: string;
  readonly rabbitmqUrl: string;
  readonly folder: string;
  readonly recorded: readonly RecordedProcess[];
}

async function startServers(): Promise<Servers> {
  const env = { ...process.env };
  for (const name of ['TEST_DATABASE_URL', 'TEST_RABBITMQ_URL']) delete env[name];
  const node = join(WORKSPACE, 'node_modules/.bin/node');
  const child = spawn(node, [join(WORKSPACE, 'tools/platform/test/hold-servers.ts')], {
    env,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  const urls = JSON.parse(line) as { TEST_DATABASE_URL: string; TEST_RABBITMQ_URL: string };
  const folder = dirname(await dataFolder(urls.TEST_DATABASE_URL));
  const recorded = findRunRecord(join(dirname(folder), 'run.json'))?.processes ?? [];
  return {
    process: child,
    databaseUrl: urls.TEST_DATABASE_URL,
    rabbitmqUrl: urls.TEST_RABBITMQ_URL,
    folder: dirname(folder),
    recorded,
  };
}

async function dataFolder(url: string): Promise<string> {
  return queryText(url, "SELECT current_setting('data_directory') AS text");
}

async function queryText(url: string, sql: string): Promise<string> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<{ text: string }>(sql);
    return rows[0]?.text ?? '';
  } finally {
    await client.end();
  }
}

function stillRunning(servers: Servers): string[] {
  return servers.recorded.filter((entry) => isRunning(entry)).map((entry) => entry.name);
}

describe('private servers', () => {
  it('serve SQL in UTF-8 and quorum queues, and end when the process that started them ends in order', async () => {
    const servers = await startServers();
    expect(stillRunning(servers).sort()).toEqual(['epmd', 'postgresql', 'rabbitmq']);
    expect(await queryText(servers.databaseUrl, "SELECT current_setting('server_encoding') AS text")).toBe(
      'UTF8',
    );
    const broker = await connect(servers.rabbitmqUrl);
    const channel = await broker.createConfirmChannel();
    await channel.assertQueue('quorum', { durable: true, arguments: { 'x-queue-type': 'quorum' } });
    await broker.close();

    servers.process.stdin?.end();
    await once(servers.process, 'exit');

    expect(stillRunning(servers)).toEqual([]);
    expect(existsSync(servers.folder)).toBe(false);
  }, 120_000);

  it('leave no process and no file behind when that process is killed with SIGKILL', async () => {
    const servers = await startServers();
    expect(stillRunning(servers)).not.toEqual([]);

    servers.process.kill('SIGKILL');

    await eventually(() => expect(existsSync(servers.folder)).toBe(false), { timeoutMs: 40_000 });
    expect(stillRunning(servers)).toEqual([]);
  }, 120_000);
});
