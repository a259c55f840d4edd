import { postgresOptions, runMigrations } from '@platform/database';
import { describeStatementsAtScale, scaleRows } from '@platform/testing';
import { DataSource } from 'typeorm';
import { InboxRepository } from '../src/nest/inbox.repository';
import { InboxMessage, inboxMigrations } from '../src/nest/inbox.entity';

const SCHEMA = 'scale';
const settings = {
  schema: SCHEMA,
  applicationName: 'scale',
  entities: [InboxMessage],
  migrations: inboxMigrations(SCHEMA),
};
const migrate = (url: string): Promise<unknown> => runMigrations({ ...settings, url, poolSize: 1 });

const ENTRY = { queue: 'q', messageName: 'm', contentHash: 'h' };
const apply = (dataSource: DataSource, messageId: string): Promise<unknown> =>
  new InboxRepository(dataSource).apply({ ...ENTRY, messageId }, 'READ COMMITTED', () =>
    Promise.resolve('answer'),
  );

describeStatementsAtScale<DataSource>({
  migrate,
  fill: [
    `INSERT INTO scale.inbox (queue, message_id, message_name, applied_at)
     SELECT 'q', n || '-' || gen_random_uuid(), 'm', now() - interval '31 days' + n * (interval '31 days' / ${String(scaleRows())})
     FROM generate_series(1, ${String(scaleRows())}) AS n`,
    'ANALYZE scale.inbox',
  ],
  connect: (url) => new DataSource(postgresOptions({ ...settings, url, poolSize: 1, statementTimeoutMs: 0 })),
  statements: [
    { name: 'apply a message', pages: 100, work: (d) => apply(d, 'new') },
    { name: 'apply it again', pages: 100, work: (d) => apply(d, 'new') },
    {
      name: 'forget what is older than 30 days',
      pages: scaleRows(),
      work: (d) => new InboxRepository(d).purge(30),
    },
    // Index entries of the rows just deleted remain until the next vacuum.
    { name: 'forget again', pages: 600 + scaleRows() / 50, work: (d) => new InboxRepository(d).purge(30) },
  ],
});
