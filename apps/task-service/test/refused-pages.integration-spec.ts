import { randomUUID } from 'node:crypto';
import { DataSource, type EntityManager } from 'typeorm';
import { ReconciliationRepository } from '../src/reconciliation/reconciliation.repository';
import { ReconciliationService } from '../src/reconciliation/reconciliation.service';
import { PARTNER, startTaskService } from './task-fixture';
import type { TaskFixture } from './task-fixture';

type Examination = Parameters<ReconciliationRepository['examine']>[2];

/** A repository whose pages time out if they contain the slow schedule. */
class SlowPages extends ReconciliationRepository {
  readonly limits: number[] = [];
  slow = '';

  override async examine(manager: EntityManager, after: string, options: Examination) {
    this.limits.push(options.limit);
    const page = await super.examine(manager, after, options);
    if (!page.some(({ scheduleId }) => scheduleId === this.slow)) return page;
    await manager.query(`SET LOCAL statement_timeout = 10`);
    await manager.query('SELECT pg_sleep(10)');
    return page;
  }
}

describe('a page of schedules whose query times out', () => {
  let service: TaskFixture;
  beforeAll(async () => {
    service = await startTaskService();
  });
  afterAll(() => service.close());

  it('is examined in smaller parts, and only the slow schedule is reported', async () => {
    const create = async (facilityId: number): Promise<string> => {
      const body = { facilityId, name: 'Round', schedule: '0 9 * * *' };
      return (await service.api.post('/Schedules').set(PARTNER).send(body).expect(201)).body.scheduleId;
    };
    const ids: string[] = [];
    for (let facilityId = 601; facilityId <= 612; facilityId += 1) ids.push(await create(facilityId));
    ids.sort();
    const repository = new SlowPages(service.app.get(DataSource));
    repository.slow = ids[5] ?? randomUUID();
    const reconciliation = Object.create(service.app.get(ReconciliationService), {
      repository: { value: repository },
    }) as ReconciliationService;
    let examined = 0;
    const findings = await reconciliation.reconcileSchedules({
      applies: false,
      graceMinutes: 60,
      waits: true,
      progress: (count) => (examined = count),
    });
    expect(examined).toBe(ids.length);
    expect(findings).toMatchObject([{ problem: 'check that failed', id: repository.slow }]);
    expect(repository.limits).toContain(1);
  }, 60_000);
});
