import { inboxMigrations } from '@platform/messaging';
import { TaskInstance } from './instances/instance.entity';
import { Tasks1800000000000 } from './migrations/1800000000000-tasks';
import { Scheduler1800000000001 } from './migrations/1800000000001-scheduler';
import { Outbox1800000000002 } from './migrations/1800000000002-outbox';
import { FireRetention1800000000003 } from './migrations/1800000000003-fire-retention';
import { TriggerOrigin1800000000004 } from './migrations/1800000000004-trigger-origin';
import { ListIndexes1800000000010 } from './migrations/1800000000010-list-indexes';
import { LeanerTriggers1800000000011 } from './migrations/1800000000011-leaner-triggers';
import { LeanerInstances1800000000012 } from './migrations/1800000000012-leaner-instances';
import { OutboxMessage } from './outbound/outbox-message.entity';
import { AppliedBusinessUnitChange } from './recurring-generation/business-unit-change.entity';
import { TriggerFire } from './scheduler/trigger-fire.entity';
import { Trigger } from './scheduler/trigger.entity';
import { Schedule } from './schedules/schedule.entity';

/** The schema that holds every table of this service. */
export const SCHEMA = 'task';

/** Every table of this service. */
export const ENTITIES = [
  Schedule,
  TaskInstance,
  Trigger,
  TriggerFire,
  AppliedBusinessUnitChange,
  OutboxMessage,
];

/** In the order they apply; listed one by one, because a bundle has no folder to search. */
export const MIGRATIONS = [
  ...inboxMigrations(SCHEMA),
  Tasks1800000000000,
  Scheduler1800000000001,
  Outbox1800000000002,
  FireRetention1800000000003,
  TriggerOrigin1800000000004,
  ListIndexes1800000000010,
  LeanerTriggers1800000000011,
  LeanerInstances1800000000012,
];

/** What the service's own role may do: no more than its statements need. Fires are never rewritten, only
 *  forgotten when they are old. */
export function appRoleGrants(quotedRole: string): string[] {
  return [
    `GRANT USAGE ON SCHEMA task TO ${quotedRole}`,
    `GRANT SELECT, INSERT, UPDATE, DELETE ON task.outbox, task.inbox, task.triggers TO ${quotedRole}`,
    `GRANT SELECT, INSERT, UPDATE ON task.schedules, task.instances, task.business_unit_changes TO ${quotedRole}`,
    `GRANT SELECT, INSERT, DELETE ON task.trigger_fires TO ${quotedRole}`,
  ];
}
