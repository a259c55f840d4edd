import { holds, same } from '../expectations.ts';
import type { Walk } from '../walk.ts';
import { type Instance, instancesOf } from './schedule.chapter.ts';
import type { Travellers } from './tokens.chapter.ts';

/** Id of the tour's calendar, the same on every walk. */
const CALENDAR = '5c0a1f6e-7b1d-4a53-9c62-0d2f6b1e8a40';

/** Previews, changes, pauses, resumes and removes a schedule, and gives it a calendar of holidays. */
export async function lifecycleChapter(
  walk: Walk,
  { ivy, carl }: Travellers,
  { scheduleId }: Instance,
): Promise<void> {
  walk.chapter('A schedule’s life');
  await preview(walk, carl);
  await calendar(walk, ivy);
  const schedule = { url: `${walk.settings.task}/Schedules/${scheduleId}`, token: carl };
  await update(walk, schedule);
  await cancelOne(walk, carl, scheduleId);
  for (const [command, status, explanation] of [
    ['pause', 'Paused', 'What is still to come is cancelled.'],
    ['resume', 'Active', 'From now on there are instances again, but none for the one that Carl cancelled.'],
    ['remove', 'Removed', 'For good.'],
  ] as const) {
    const request = { method: 'POST', url: `${schedule.url}/commands/${command}`, token: carl } as const;
    await walk.step(`The schedule is ${status.toLowerCase()}`, request, (response) => {
      same('status', (response.json as Instance).status, status);
      return explanation;
    });
  }
}

async function update(walk: Walk, schedule: { url: string; token: string }): Promise<void> {
  const read = await walk.step(
    'Carl reads his schedule',
    schedule,
    (response) => `Its ETag is ${response.headers.get('etag') ?? 'missing'}.`,
  );
  const headers = { 'if-match': read.headers.get('etag') ?? '' };
  const body = { schedule: '30 8 * * 1-5', calendarId: CALENDAR };
  const later = { method: 'PATCH', ...schedule, headers } as const;
  await walk.step('He wants it an hour later, and not on holidays', { ...later, body }, (response) => {
    same('schedule', (response.json as { schedule: string }).schedule, body.schedule);
    return 'Instances still to come follow at once; ScheduleUpdatedEvent says how many were cancelled.';
  });
  const stale = { ...later, body: { name: 'Somebody else’s' }, status: 412 };
  const explanation = 'If-Match keeps a change from overwriting one it has not seen.';
  await walk.step('Somebody sends a change with the old ETag', stale, explanation);
}

async function preview(walk: Walk, token: string): Promise<void> {
  const url = `${walk.settings.task}/Schedules/commands/preview`;
  const body = { schedule: '30 2 * * *', timeZone: 'Europe/Berlin', from: '2027-03-28T00:00:00Z', limit: 1 };
  const request = { method: 'POST', url, token, body } as const;
  await walk.step('Carl asks when half past two comes on the day clocks go forward', request, (response) => {
    const { occurrences } = response.json as { occurrences: { local: string; shift?: string }[] };
    same('the occurrence', occurrences[0], {
      dueAtUtc: '2027-03-28T01:30:00.000Z',
      local: '2027-03-28T03:30',
      shift: 'skipped-hour',
    });
    return 'An hour later by the clock. Nothing was stored.';
  });
}

async function calendar(walk: Walk, token: string): Promise<void> {
  const body = { name: 'Holidays', excludedDates: ['2026-12-25', '2026-12-26', '2027-01-01'] };
  const url = `${walk.settings.task}/Calendars/${CALENDAR}`;
  const explanation = 'Schedules that name this calendar leave its dates out, each in its own time zone.';
  await walk.step('Ivy stores the holidays', { method: 'PUT', url, token, body }, explanation);
}

async function cancelOne(walk: Walk, token: string, scheduleId: string): Promise<void> {
  const { task } = walk.settings;
  const pending = { url: `${task}/Instances?scheduleId=${scheduleId}&status=Pending`, token };
  const listed = await walk.step('Carl lists the pending instances', pending, (response) => {
    const found = instancesOf(response);
    holds('the number of instances', found.length > 0, 'some', found.length);
    return `The first is due ${found[0]?.dueAtUtc}.`;
  });
  const { taskInstanceId } = instancesOf(listed)[0] as Instance;
  const url = `${task}/Instances/${taskInstanceId}/commands/cancel`;
  const body = { reason: 'The building is closed.' };
  await walk.step('He cancels it', { method: 'POST', url, token, body }, (response) => {
    same('status', (response.json as Instance).status, 'Cancelled');
    return 'Nothing is generated at this time again.';
  });
}
