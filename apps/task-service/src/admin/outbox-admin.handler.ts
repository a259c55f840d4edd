import { postgresOptions } from '@platform/database';
import { DataSource } from 'typeorm';
import { SCHEMA } from '../database-layout';
import { eventDetails, eventLine } from './admin-output';
import type { Shown } from './admin-output';
import type { Command } from './command-line';
import { discardParkedEvents, listParkedEvents, replayParkedEvents } from './parked-events.query';

/** Carries out a command on the message store; gives what is to be shown. */
export async function outboxAdmin(command: Command, databaseUrl: string): Promise<Shown[]> {
  const dataSource = await new DataSource(
    postgresOptions({
      url: databaseUrl,
      schema: SCHEMA,
      applicationName: 'task-service-admin',
      entities: [],
      migrations: [],
      poolSize: 1,
    }),
  ).initialize();
  try {
    return await carryOut(command, dataSource);
  } finally {
    await dataSource.destroy();
  }
}

async function carryOut({ action, selection, limit }: Command, dataSource: DataSource): Promise<Shown[]> {
  switch (action) {
    case 'list':
      return (await listParkedEvents(dataSource, selection, limit)).map(eventLine);
    case 'show':
      return (await listParkedEvents(dataSource, selection, limit)).map(eventDetails);
    case 'replay':
      return (await replayParkedEvents(dataSource, selection)).map(eventLine);
    case 'discard':
      return (await discardParkedEvents(dataSource, selection)).map(eventLine);
  }
}
