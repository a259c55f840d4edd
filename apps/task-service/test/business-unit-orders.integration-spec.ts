import { randomUUID } from 'node:crypto';
import type { BusinessUnitChangeV1 } from '@platform/contracts';
import { inTransaction } from '@platform/database';
import fc from 'fast-check';
import { DataSource } from 'typeorm';
import { BusinessUnitChangeConsumer } from '../src/recurring-generation/business-unit-change.consumer';
import { startTaskService } from './task-fixture';
import type { TaskFixture } from './task-fixture';

const RUNS = Number(process.env.TEST_ORDERS ?? '100');
const PLACES = [0, 1, 2];

/**
 * A change of one unit. `places` are indexes of facilities; the step's position in the list determines its
 * date.
 */
interface Step {
  readonly changeType: BusinessUnitChangeV1['changeType'];
  readonly places: readonly number[];
}

const step = fc.record<Step>({
  changeType: fc.constantFrom('Activated', 'Updated', 'Deactivated'),
  places: fc.subarray(PLACES),
});

/** Generates changes in time order, and an order of arrival in which each occurs at least once. */
const arrivals = fc.array(step, { minLength: 1, maxLength: 7 }).chain((steps) => {
  const all = steps.map((_, index) => index);
  const repeated = fc.array(fc.constantFrom(...all), { maxLength: 3 });
  const order = repeated.chain((more) =>
    fc.shuffledSubarray([...all, ...more], { minLength: all.length + more.length }),
  );
  return fc.record({ steps: fc.constant(steps), order });
});

/** Returns the facilities that a unit has after its changes are applied in time order. */
function heldAfter(steps: readonly Step[]): number[] {
  let [isActive, held] = [false, new Set<number>()];
  for (const { changeType, places } of steps) {
    if (changeType === 'Activated') [isActive, held] = [true, new Set([...held, ...places])];
    else if (changeType === 'Deactivated') [isActive, held] = [false, new Set()];
    else if (isActive) held = new Set(places);
  }
  return PLACES.filter((place) => held.has(place));
}

describe('the changes of a business unit', () => {
  let service: TaskFixture;
  let lastUnit = 5_000;

  beforeAll(async () => {
    service = await startTaskService();
  });
  afterAll(() => service.close());

  const held = async (unit: number): Promise<number[]> => {
    const rows = await service.database.query<{ place: number }>(
      'SELECT (facility_id - $1 * 10)::int AS place FROM task.triggers WHERE facility_id BETWEEN $1 * 10 AND $1 * 10 + 9 ORDER BY 1',
      [unit],
    );
    return rows.map(({ place }) => place);
  };

  it('have the result of their time order, in whatever order and however often they arrive', async () => {
    const [consumer, dataSource] = [service.app.get(BusinessUnitChangeConsumer), service.app.get(DataSource)];
    const consume = (change: BusinessUnitChangeV1) =>
      inTransaction(dataSource, 'READ COMMITTED', (transaction) =>
        consumer.onChange(change, { transaction, conversationId: null } as never),
      );
    const run = async ({ steps, order }: { steps: readonly Step[]; order: readonly number[] }) => {
      const unit = (lastUnit += 1);
      const changes = steps.map(({ changeType, places }, index): BusinessUnitChangeV1 => ({
        eventId: randomUUID(),
        occurredAtUtc: new Date(Date.UTC(2026, 5, 2, 12, index)).toISOString(),
        businessUnitId: unit,
        facilityIds: places.map((place) => unit * 10 + place),
        changeType,
      }));
      for (const index of order) await consume(changes[index]!);
      expect(await held(unit)).toEqual(heldAfter(steps));
    };
    const [activated, listed, deactivated]: Step[] = [
      { changeType: 'Activated', places: [0] },
      { changeType: 'Updated', places: [0] },
      { changeType: 'Deactivated', places: [] },
    ];
    const late = { steps: [activated!, deactivated!, listed!], order: [0, 2, 1] };
    await fc.assert(fc.asyncProperty(arrivals, run), { numRuns: RUNS, examples: [[late]] });
  }, 300_000);
});
