import { createHash } from 'node:crypto';
import { join } from 'node:path';
import {
  ScheduleCreatedEvent,
  ScheduleCreatedNotification,
  ScheduledMessageEvent,
} from '@platform/contracts';
import type { PlainBus } from '@platform/messaging';
import { brokerAddresses } from '@platform/service-defaults';
import { SYSTEM_CLOCK } from '@platform/time';
import { z } from 'zod';
import {
  PATIENT_RETRY_DELAYS_MS,
  busNeighbourShape,
  connectLogged,
  createBusNeighbour,
} from '../neighbour/bus';
import { Ledger } from '../neighbour/ledger';
import { pageQuery, portVariable } from '../neighbour/neighbour';
import type { Neighbour } from '../neighbour/neighbour';

/**
 * Returns the id under which the message `messageId` is republished. A redelivered message is republished
 * under the same id, so that the receiver's inbox recognises it. A UUID of version 8 (RFC 9562), from
 * SHA-256.
 */
export function republishedId(messageId: string): string {
  const bytes = createHash('sha256').update(`IScheduleCreatedEvent:${messageId}`).digest().subarray(0, 16);
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x80;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = bytes.toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

export const schedulingConfig = z.object({
  ...busNeighbourShape,
  PORT: portVariable.default(3012),
  RABBITMQ_SCHEDULING_URL: brokerAddresses,
});
export type SchedulingConfig = z.output<typeof schedulingConfig>;

const eventsQuery = z.object({
  ...pageQuery,
  scheduleId: z.string().optional(),
  facilityId: z.coerce.number().int().optional(),
});

/**
 * Creates the scheduling service, which republishes ScheduleCreatedEvent as IScheduleCreatedEvent and records
 * scheduled messages.
 */
export function createScheduling(config: SchedulingConfig): Promise<Neighbour> {
  return createBusNeighbour('scheduling', config.LOG_LEVEL, async (server) => {
    const inState = (file: string): string => join(config.STATE_DIRECTORY, file);
    const created = await Ledger.open<ScheduleCreatedEvent>(
      inState('schedules-passed-on.jsonl'),
      SYSTEM_CLOCK,
    );
    const scheduled = await Ledger.open<ScheduledMessageEvent>(
      inState('scheduled-messages.jsonl'),
      SYSTEM_CLOCK,
    );
    const common = { name: 'scheduling-service', namespace: config.MESSAGE_NAMESPACE };
    const main = await connectLogged({ ...common, url: config.RABBITMQ_MAIN_URL }, server.log);
    const scheduling = await connectLogged(
      { ...common, bus: 'scheduling', url: config.RABBITMQ_SCHEDULING_URL },
      server.log,
    );
    await republishCreated(main, scheduling, created);
    await recordScheduled(scheduling, scheduled);
    server.get('/events', (request) => {
      const { after, limit, scheduleId, facilityId } = eventsQuery.parse(request.query);
      const matches = (event: ScheduleCreatedEvent): boolean =>
        (scheduleId === undefined || event.scheduleId === scheduleId) &&
        (facilityId === undefined || event.facilityId === facilityId);
      return {
        scheduleCreated: created.entries({ after, limit, matches }),
        scheduledMessages: scheduled.entries({ after, limit }),
        duplicates: created.duplicates,
      };
    });
    // The main bus is closed first: its handlers that still run publish on the other one.
    return { buses: [main, scheduling], ledgers: [created, scheduled] };
  });
}

function republishCreated(
  main: PlainBus,
  scheduling: PlainBus,
  ledger: Ledger<ScheduleCreatedEvent>,
): Promise<void> {
  return main.consume(
    ScheduleCreatedEvent,
    { queue: 'scheduling-service.schedule-created', retryDelaysMs: PATIENT_RETRY_DELAYS_MS },
    async (event, context) => {
      // The ledger holds only messages whose republication the broker has confirmed. A message that it lacks
      // may have been republished before a crash, so it gets the same id again.
      if (!ledger.has(context.messageId)) {
        await scheduling.publish(ScheduleCreatedNotification, event, {
          messageId: republishedId(context.messageId),
          conversationId: context.conversationId,
          correlationId: context.correlationId ?? undefined,
        });
      }
      await ledger.append(context.messageId, event);
    },
  );
}

function recordScheduled(scheduling: PlainBus, ledger: Ledger<ScheduledMessageEvent>): Promise<void> {
  return scheduling.consume(
    ScheduledMessageEvent,
    { queue: 'scheduling-service.scheduled-message', retryDelaysMs: PATIENT_RETRY_DELAYS_MS },
    (event, context) => ledger.append(context.messageId, event),
  );
}
