import { holds, same, type WalkResponse } from '../expectations.ts';
import type { TourSettings } from '../addresses.ts';
import type { Walk } from '../walk.ts';
import type { Instance } from './schedule.chapter.ts';
import type { Travellers } from './tokens.chapter.ts';

/** A calendar of the tour, the same on every walk. */
const CALENDAR = '5c0a1f6e-7b1d-4a53-9c62-0d2f6b1e8a40';

/** A schedule is looked at, changed, left out of holidays, paused, resumed and removed. */
export async function lifecycleChapter(
  walk: Walk,
  settings: TourSettings,
  { ivy, carl }: Travellers,
  { scheduleId }: Instance,
): Promise<void> {
  walk.chapter('A schedule’s life');
  const schedules = `${settings.task}/Schedules`;
  await preview(walk, schedules, carl);
  await calendar(walk, settings, ivy);
  const schedule = { url: `${schedules}/${scheduleId}`, token: carl };
  await update(walk, schedule);
  await cancelOne(walk, settings, carl, scheduleId);
  for (const [command, status, explanation] of [
    ['pause', 'Paused', 'What is still to come is cancelled.'],
    ['resume', 'Active', 'From now on there are instances again, but none for the one that Carl cancelled.'],
    ['remove', 'Removed', 'For good.'],
  ] as const) {
    const request = { method: 'POST', url: `${schedule.url}/commands/${command}`, token: carl } as const;
    await walk.step(`The schedule is ${status.toLowerCase()}`, request, (response) => {
      same('the status', response.status, 200);
      same('status', (response.json as Instance).status, status);
      return explanation;
    });
  }
}

async function update(walk: Walk, schedule: { url: string; token: string }): Promise<void> {
  const read = await walk.step('Carl reads his schedule', { method: 'GET', ...schedule }, (response) => {
    same('the status', response.status, 200);
    return `Its ETag is ${response.headers.get('etag') ?? 'missing'}.`;
  });
  const headers = { 'if-match': read.headers.get('etag') ?? '' };
  const body = { schedule: '30 8 * * 1-5', calendarId: CALENDAR };
  const later = { method: 'PATCH', ...schedule, headers } as const;
  await walk.step('He wants it an hour later, and not on holidays', { ...later, body }, (response) => {
    same('the status', response.status, 200);
    same('schedule', (response.json as { schedule: string }).schedule, body.schedule);
    return 'Instances still to come follow at once; ScheduleUpdatedEvent says how many were cancelled.';
  });
  const stale = { ...later, body: { name: 'Somebody else’s' } };
  await walk.step('Somebody changes what he saw before that', stale, (response) => {
    same('the status', response.status, 412);
    return 'If-Match keeps a change from overwriting one it has not seen.';
  });
}

async function preview(walk: Walk, schedules: string, token: string): Promise<void> {
  const body = { schedule: '30 2 * * *', timeZone: 'Europe/Berlin', from: '2027-03-28T00:00:00Z', limit: 1 };
  const request = { method: 'POST', url: `${schedules}/commands/preview`, token, body } as const;
  await walk.step('Carl asks when half past two comes on the day clocks go forward', request, (response) => {
    same('the status', response.status, 200);
    const { occurrences } = response.json as { occurrences: { local: string; shift?: string }[] };
    same('the occurrence', occurrences[0], {
      ...{ dueAtUtc: '2027-03-28T01:30:00.000Z', local: '2027-03-28T03:30', shift: 'skipped-hour' },
    });
    return 'An hour later by the clock. Nothing was stored.';
  });
}

async function calendar(walk: Walk, settings: TourSettings, token: string): Promise<void> {
  const body = { name: 'Holidays', excludedDates: ['2026-12-25', '2026-12-26', '2027-01-01'] };
  const request = { method: 'PUT', url: `${settings.task}/Calendars/${CALENDAR}`, token, body } as const;
  await walk.step('Ivy keeps the holidays', request, (response) => {
    same('the status', response.status, 200);
    return 'Schedules that name this calendar leave its dates out, each in its own time zone.';
  });
}

async function cancelOne(
  walk: Walk,
  settings: TourSettings,
  token: string,
  scheduleId: string,
): Promise<void> {
  const url = `${settings.task}/Instances?scheduleId=${scheduleId}&status=Pending`;
  const listed = await walk.step(
    'Carl looks at what is to come',
    { method: 'GET', url, token },
    (response) => {
      same('the status', response.status, 200);
      holds(
        'the number of instances',
        instancesOf(response).length > 0,
        'some',
        instancesOf(response).length,
      );
      return `The first is due ${instancesOf(response)[0]?.dueAtUtc}.`;
    },
  );
  const { taskInstanceId } = instancesOf(listed)[0] as Instance;
  const cancel = {
    method: 'POST',
    url: `${settings.task}/Instances/${taskInstanceId}/commands/cancel`,
    token,
  } as const;
  await walk.step('He cancels it', { ...cancel, body: { reason: 'The building is closed.' } }, (response) => {
    same('the status', response.status, 200);
    same('status', (response.json as Instance).status, 'Cancelled');
    return 'Nothing is generated at this time again.';
  });
}

function instancesOf(response: WalkResponse): Instance[] {
  return (response.json as { instances: Instance[] }).instances;
}
