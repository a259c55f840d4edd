import { InboxMessage, inboxMigrations } from '@platform/messaging';
import { CalendarRollout } from './calendars/calendar-rollout.entity';
import { Calendar } from './calendars/calendar.entity';
import { TaskInstance } from './instances/instance.entity';
import { Release } from './stored-schedules/release.entity';
import { Template } from './instances/template.entity';
import { TaskTables1800000000000 } from './migrations/1800000000000-task-tables';
import { ScheduleLifecycle1800000001000 } from './migrations/1800000001000-schedule-lifecycle';
import { BusinessUnitFacilities1800000002000 } from './migrations/1800000002000-business-unit-facilities';
import { OutboxByType1800000002001 } from './migrations/1800000002001-outbox-by-type';
import { FiresByMonth1800000003000 } from './migrations/1800000003000-fires-by-month';
import { SchedulesCountedByIndex1800000004000 } from './migrations/1800000004000-schedules-counted-by-index';
import { TemplatesOfInstances1800000004999 } from './migrations/1800000004999-templates-of-instances';
import { ReleasesAndTemplates1800000005000 } from './migrations/1800000005000-releases-and-templates';
import { ReleaseIndexes1800000005001 } from './migrations/1800000005001-release-indexes';
import { FollowTemplates1800000005002 } from './migrations/1800000005002-follow-templates';
import { BusinessUnits1800000006000 } from './migrations/1800000006000-business-units';
import { FiresByDate1800000006001 } from './migrations/1800000006001-fires-by-date';
import { FiresInSteps1800000006002 } from './migrations/1800000006002-fires-in-steps';
import { OutboxPauses1800000007000 } from './migrations/1800000007000-outbox-pauses';
import { SchedulesByCalendar1800000008000 } from './migrations/1800000008000-schedules-by-calendar';
import { RemovedSchedulesAndRollouts1800000010000 } from './migrations/1800000010000-removed-schedules-and-rollouts';
import { RemovedSchedulesIndex1800000010001 } from './migrations/1800000010001-removed-schedules-index';
import { SchedulesByState1800000011000 } from './migrations/1800000011000-schedules-by-state';
import { RolloutsInTwoPasses1800000012000 } from './migrations/1800000012000-rollouts-in-two-passes';
import { CalendarsInUse1800000012001 } from './migrations/1800000012001-calendars-in-use';
import { BusinessUnitsInAnyOrder1800000013000 } from './migrations/1800000013000-business-units-in-any-order';
import { OutboxByFacility1800000014000 } from './migrations/1800000014000-outbox-by-facility';
import { SchedulesFollowingCalendars1800000015000 } from './migrations/1800000015000-schedules-following-calendars';
import { OutboxMessage } from './outbound/outbox-message.entity';
import { OutboxPause } from './outbound/outbox-pause.entity';
import {
  AppliedBusinessUnitChange,
  BusinessUnit,
  BusinessUnitFacility,
} from './recurring-generation/business-unit-change.entity';
import { FacilityActivity } from './scheduler/facility-activity.entity';
import { TriggerFire } from './scheduler/trigger-fire.entity';
import { Trigger } from './scheduler/trigger.entity';
import { Schedule } from './stored-schedules/schedule.entity';

export const SCHEMA = 'task';

/** Data source of the message consumers. HTTP uses the default one. */
export const CONSUMER_POOL = 'consumers';
/** Data source of the relay and the scheduler. */
export const RELAY_POOL = 'relay';

export const ENTITIES = [
  Calendar,
  CalendarRollout,
  Schedule,
  TaskInstance,
  Template,
  Release,
  Trigger,
  TriggerFire,
  FacilityActivity,
  BusinessUnit,
  AppliedBusinessUnitChange,
  BusinessUnitFacility,
  OutboxMessage,
  OutboxPause,
  InboxMessage,
];

/**
 * All migrations. TypeORM orders them by the number in the class name. Listed explicitly because a bundle has
 * no folder to scan.
 */
export const MIGRATIONS = [
  ...inboxMigrations(SCHEMA),
  TaskTables1800000000000,
  ScheduleLifecycle1800000001000,
  BusinessUnitFacilities1800000002000,
  OutboxByType1800000002001,
  FiresByMonth1800000003000,
  SchedulesCountedByIndex1800000004000,
  TemplatesOfInstances1800000004999,
  ReleasesAndTemplates1800000005000,
  ReleaseIndexes1800000005001,
  FollowTemplates1800000005002,
  BusinessUnits1800000006000,
  FiresByDate1800000006001,
  FiresInSteps1800000006002,
  OutboxPauses1800000007000,
  SchedulesByCalendar1800000008000,
  RemovedSchedulesAndRollouts1800000010000,
  RemovedSchedulesIndex1800000010001,
  SchedulesByState1800000011000,
  RolloutsInTwoPasses1800000012000,
  CalendarsInUse1800000012001,
  BusinessUnitsInAnyOrder1800000013000,
  OutboxByFacility1800000014000,
  SchedulesFollowingCalendars1800000015000,
];

/**
 * Returns the grants of the service's database role: only what its statements need. It cannot update or
 * delete fires directly; `task.keep_fires_step` deletes old ones.
 */
export function appRoleGrants(quotedRole: string): string[] {
  return [
    `GRANT USAGE ON SCHEMA task TO ${quotedRole}`,
    `GRANT SELECT, INSERT, UPDATE, DELETE ON task.outbox, task.outbox_pauses, task.inbox, task.triggers TO ${quotedRole}`,
    // The relay reads the last value of the sequence.
    `GRANT SELECT ON SEQUENCE task.outbox_sequence_seq TO ${quotedRole}`,
    `GRANT SELECT, INSERT, UPDATE ON task.schedules, task.instances, task.business_unit_changes, task.business_unit_facilities TO ${quotedRole}`,
    `GRANT SELECT, INSERT, UPDATE ON task.business_units, task.facility_activity TO ${quotedRole}`,
    `GRANT SELECT, INSERT ON task.fires TO ${quotedRole}`,
    `GRANT SELECT, DELETE ON task.trigger_fires TO ${quotedRole}`,
    // Repeated from the migration, because a restored database has no privileges.
    `REVOKE ALL ON FUNCTION task.keep_fires(integer) FROM PUBLIC`,
    `GRANT EXECUTE ON FUNCTION task.keep_fires(integer) TO ${quotedRole}`,
    `REVOKE ALL ON FUNCTION task.keep_fires_step(integer, integer, boolean) FROM PUBLIC`,
    `GRANT EXECUTE ON FUNCTION task.keep_fires_step(integer, integer, boolean) TO ${quotedRole}`,
    `GRANT SELECT, INSERT, UPDATE, DELETE ON task.calendars, task.calendar_rollouts TO ${quotedRole}`,
    // For removed schedules that nothing refers to any more.
    `GRANT DELETE ON task.schedules TO ${quotedRole}`,
    // For moving an instance to `released_instances` when its instant is released. Reads of task.instances
    // return the rows of both tables.
    `GRANT DELETE ON task.instances TO ${quotedRole}`,
    `GRANT SELECT, INSERT, DELETE ON task.released_instances TO ${quotedRole}`,
    `GRANT SELECT, INSERT, UPDATE, DELETE ON task.releases, task.templates TO ${quotedRole}`,
  ];
}
