import { dueBetween, recurrenceOf } from '../src/recurrence/recurrence';

const DAY_MS = 86_400_000;
const HORIZON_MS = 30 * DAY_MS;

export interface Definition {
  readonly name: string;
  readonly schedule: string;
  readonly timeZone: string;
  readonly startDate: string | null;
  readonly endDate: string | null;
  readonly calendarId: string | null;
}

interface ModelSchedule {
  readonly id: string;
  definition: Definition;
  status: 'Active' | 'Paused' | 'Removed';
  generatedUntil: number;
  /** Calendar dates of the last generation; null without a calendar, or before the first generation. */
  generatedBy: string | null;
}

export interface ModelInstance {
  readonly scheduleId: string;
  readonly due: number;
  name: string;
  status: 'Pending' | 'Completed' | 'Cancelled';
  cause: string | null;
  /** Null until the instance was read from the database. */
  id: string | null;
}

/** A model of docs/task-states.md without a database: the schedules and instances of one facility. */
export class ScheduleModel {
  readonly schedules: ModelSchedule[] = [];
  readonly instances: ModelInstance[] = [];
  readonly events: string[] = [];
  excludedDates: string[] = [];

  constructor(public now: number) {}

  create(id: string, definition: Definition): void {
    const { startsAt } = recurrenceOf({ ...definition, excludedDates: null });
    const generatedUntil = Math.max(this.now, startsAt === null ? 0 : startsAt.getTime() - 1);
    this.schedules.push({ id, definition, status: 'Active', generatedUntil, generatedBy: null });
    this.events.push(`ScheduleCreatedEvent ${id}`);
  }

  /** Models a run of generation, which also applies calendar changes. */
  generate(): void {
    const until = this.now + HORIZON_MS;
    for (const schedule of this.schedules.filter(({ status }) => status === 'Active')) {
      if (this.isStale(schedule)) {
        this.fill(schedule, Math.min(schedule.generatedUntil, this.now), this.now);
        this.align(schedule, 'Calendar');
      } else if (schedule.generatedUntil < until) {
        this.fill(schedule, schedule.generatedUntil, until);
        schedule.generatedUntil = until;
      }
    }
  }

  isStale({ definition, generatedBy }: ModelSchedule): boolean {
    return definition.calendarId !== null && generatedBy !== this.excludedDates.join();
  }

  update(schedule: ModelSchedule, change: Partial<Definition>): 200 | 409 {
    if (schedule.status === 'Removed') return 409;
    const definition = { ...schedule.definition, ...change };
    if (JSON.stringify(definition) === JSON.stringify(schedule.definition)) return 200;
    this.catchUp(schedule);
    schedule.definition = definition;
    this.changed('ScheduleUpdatedEvent', schedule, 'Update');
    for (const instance of this.toCome(schedule)) instance.name = definition.name;
    return 200;
  }

  command(schedule: ModelSchedule, command: 'pause' | 'resume' | 'remove'): 200 | 409 {
    const status = ({ pause: 'Paused', resume: 'Active', remove: 'Removed' } as const)[command];
    if (schedule.status === status) return 200;
    if (schedule.status === 'Removed') return 409;
    this.catchUp(schedule);
    schedule.status = status;
    const event = {
      pause: 'SchedulePausedEvent',
      resume: 'ScheduleResumedEvent',
      remove: 'ScheduleRemovedEvent',
    };
    this.changed(event[command], schedule, command === 'remove' ? 'Removal' : 'Pause');
    return 200;
  }

  end(instance: ModelInstance, command: 'complete' | 'cancel'): 200 | 409 {
    const status = command === 'complete' ? 'Completed' : 'Cancelled';
    if (instance.status === status) return 200;
    if (instance.status !== 'Pending') return 409;
    instance.status = status;
    if (command === 'cancel') instance.cause = 'Person';
    this.events.push(`TaskInstance${status}Event ${instance.scheduleId} ${String(instance.due)}`);
    return 200;
  }

  private changed(event: string, schedule: ModelSchedule, cause: string): void {
    this.events.push(`${event} ${schedule.id} ${String(this.align(schedule, cause))}`);
  }

  private catchUp(schedule: ModelSchedule): void {
    if (schedule.status !== 'Active' || schedule.generatedUntil >= this.now) return;
    this.fill(schedule, schedule.generatedUntil, this.now);
    schedule.generatedUntil = this.now;
  }

  /**
   * Cancels future instances that are no longer due, and adds missing ones. Returns the number of cancelled
   * ones.
   */
  private align(schedule: ModelSchedule, cause: string): number {
    const until = this.now + HORIZON_MS;
    const wanted = new Set(schedule.status === 'Active' ? this.due(schedule, this.now, until) : []);
    const released = this.toCome(schedule).filter(({ due }) => !wanted.has(due));
    for (const instance of released) Object.assign(instance, { status: 'Cancelled', cause });
    if (schedule.status !== 'Active') return released.length;
    this.fill(schedule, this.now, until);
    schedule.generatedUntil = until;
    schedule.generatedBy = schedule.definition.calendarId === null ? null : this.excludedDates.join();
    return released.length;
  }

  private toCome({ id }: ModelSchedule): ModelInstance[] {
    return this.instances.filter(
      ({ scheduleId, status, due }) => scheduleId === id && status === 'Pending' && due > this.now,
    );
  }

  private fill(schedule: ModelSchedule, after: number, until: number): void {
    const { id: scheduleId, definition } = schedule;
    const taken = new Set(
      this.instances
        .filter(
          (each) =>
            each.scheduleId === scheduleId && (each.status !== 'Cancelled' || each.cause === 'Person'),
        )
        .map(({ due }) => due),
    );
    for (const due of this.due(schedule, after, until).filter((each) => !taken.has(each)))
      this.instances.push({
        scheduleId,
        due,
        name: definition.name,
        status: 'Pending',
        cause: null,
        id: null,
      });
  }

  private due({ definition }: ModelSchedule, after: number, until: number): number[] {
    const excludedDates = definition.calendarId === null ? null : this.excludedDates;
    const recurrence = recurrenceOf({ ...definition, excludedDates });
    const first = Math.max(after, this.now - 90 * DAY_MS);
    return dueBetween(recurrence, new Date(first), new Date(until)).map((instant) => instant.getTime());
  }
}
