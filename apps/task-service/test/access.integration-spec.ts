import { readFileSync } from 'node:fs';
import { randomUUID } from 'node:crypto';
import { resolve } from 'node:path';
import { Persona, hasAnyPersona } from '@platform/personas';
import { bearer } from '@platform/testing';
import { PARTNER, startTaskService } from './task-fixture';
import type { TaskFixture } from './task-fixture';

const DOCUMENT = JSON.parse(
  readFileSync(resolve(__dirname, '../../../docs/openapi/task-service.json'), 'utf8'),
) as { paths: Record<string, Record<string, { operationId: string }>> };

const { InternalPartner, Customer, Owner, ServiceProvider } = Persona;
const MANAGERS = [InternalPartner, Customer, Owner];

/**
 * The personas that may call each operation. `of` is the facility of the request, which must be one of the
 * caller's.
 */
const OPERATIONS: Record<string, { who: readonly Persona[]; of?: 501; body?: object }> = {
  createSchedule: { who: MANAGERS, of: 501, body: { facilityId: 501, name: 'x', schedule: '0 9 * * 1' } },
  listSchedules: { who: MANAGERS },
  getSchedule: { who: MANAGERS, of: 501 },
  updateSchedule: { who: MANAGERS, of: 501, body: {} },
  pauseSchedule: { who: MANAGERS, of: 501 },
  resumeSchedule: { who: MANAGERS, of: 501 },
  removeSchedule: { who: MANAGERS, of: 501 },
  listOccurrences: { who: MANAGERS, of: 501 },
  previewSchedule: { who: MANAGERS, body: { schedule: '0 9 * * 1' } },
  putCalendar: { who: [InternalPartner], body: { name: 'x', excludedDates: [] } },
  getCalendar: { who: MANAGERS },
  listCalendars: { who: MANAGERS },
  deleteCalendar: { who: [InternalPartner] },
  completeInstance: { who: [...MANAGERS, ServiceProvider], of: 501 },
  cancelInstance: { who: MANAGERS, of: 501 },
  listInstances: { who: [...MANAGERS, ServiceProvider] },
  getInstance: { who: [...MANAGERS, ServiceProvider], of: 501 },
  listTriggers: { who: MANAGERS },
  listTriggerFires: { who: MANAGERS, of: 501 },
  pauseTrigger: { who: [InternalPartner] },
  resumeTrigger: { who: [InternalPartner] },
  scheduleRecurringTaskInstanceGeneration: { who: [InternalPartner], body: {} },
  unscheduleRecurringTaskInstanceGeneration: { who: [InternalPartner], body: {} },
  generateTaskInstances: { who: [InternalPartner], body: {} },
};

interface TestIdentity {
  personas: number;
  facilities: number[];
  facilityPersonas?: number[];
  roles?: string[];
}

/**
 * The development identities, and two callers that have facility 501 with one persona and 777 with another.
 */
const IDENTITIES: Record<string, TestIdentity> = {
  ivy: { personas: InternalPartner, facilities: [] },
  carl: { personas: Customer, facilities: [501, 502] },
  olga: { personas: Owner, facilities: [501] },
  rita: { personas: Persona.Resident, facilities: [501] },
  tess: { personas: ServiceProvider, facilities: [501] },
  gina: { personas: Customer, facilities: [], roles: ['CustomerGlobalAdministrator'] },
  lena: { personas: Customer, facilities: [] },
  'rita, a customer of 777': {
    personas: Persona.Resident | Customer,
    facilities: [501, 777],
    facilityPersonas: [Persona.Resident, Customer],
  },
  'tess, a customer of 777': {
    personas: ServiceProvider | Customer,
    facilities: [501, 777],
    facilityPersonas: [ServiceProvider, Customer],
  },
};

const documented = Object.entries(DOCUMENT.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, { operationId }]) => ({ path, method, operationId })),
);
const ROUTES = documented.filter(({ operationId }) => operationId in OPERATIONS);

describe('access', () => {
  let service: TaskFixture;
  let scheduleId: string;
  let taskInstanceId: string;

  beforeAll(async () => {
    service = await startTaskService();
    const body = { facilityId: 501, name: 'Fire drill', schedule: '0 9 * * 1' };
    scheduleId = (await service.api.post('/Schedules').set(PARTNER).send(body).expect(201)).body.scheduleId;
    const rows = await service.database.query<{ id: string }>(
      `INSERT INTO task.instances (schedule_id, facility_id, name, due_at) VALUES ($1, 501, 'x', now())
       RETURNING task_instance_id AS id`,
      [scheduleId],
    );
    taskInstanceId = rows[0]?.id ?? '';
  });
  afterAll(() => service.close());

  it('is tested for every operation except health and diagnostics', () => {
    const others = documented.filter(({ operationId }) => !(operationId in OPERATIONS));
    expect(others.filter(({ path }) => !/health|diagnostics|ping/i.test(path))).toEqual([]);
    expect(ROUTES.map(({ operationId }) => operationId).sort()).toEqual(Object.keys(OPERATIONS).sort());
  });

  it.each(ROUTES)('$method $path', async ({ path, method, operationId }) => {
    const { who, of, body } = OPERATIONS[operationId] ?? { who: [] };
    const id = path.startsWith('/Schedules')
      ? scheduleId
      : path.startsWith('/Instances')
        ? taskInstanceId
        : randomUUID();
    const url = path.replace('{id}', id).replace('{facilityId}', '501');
    const send = (headers: Record<string, string>) =>
      service.api[method as 'get'](url).set(headers).send(body);
    await send({}).expect(401);
    const isAccepted = (personas: number): boolean => who.some((each) => hasAnyPersona(personas, each));
    for (const [name, identity] of Object.entries(IDENTITIES)) {
      const { personas, facilities, facilityPersonas } = identity;
      const { status } = await send(bearer({ ...identity }));
      const reaches =
        of === undefined ||
        personas === InternalPartner ||
        facilities.some((each, index) => each === of && isAccepted(facilityPersonas?.[index] ?? personas));
      expect(`${name} ${String(status === 403)}`).toBe(
        `${name} ${String(!(isAccepted(personas) && reaches))}`,
      );
      expect([401, 500, 503]).not.toContain(status);
    }
  });
});
