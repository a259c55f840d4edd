import type { TestPlatform } from '#platform/test-platform.ts';
import type { HttpLoad } from '../load.ts';
import { addInstances, addSchedules, type Facilities } from './facilities.ts';
import { headersOf, type Operation, OPERATIONS, post, SETTINGS } from './operations.ts';

const PAGE_SIZE = 20;
const LISTED_SETTINGS = 100;
const LISTED: Facilities = { first: 10_001, count: 100 };
const SCHEDULES_OF_LISTED = 25;
/** Enough instances for a run of some hours. */
const COMPLETED: Facilities = { first: 20_001, count: 1_000 };

/** Operations that are measured only at an ordinary pace. */
const FURTHER: readonly Operation[] = [
  {
    id: 'listSubsystemSettings',
    service: 'settings',
    prepare: async (platform, load) => {
      const headers = headersOf(platform);
      await putListedSettings(load, headers);
      return () => ({ method: 'GET', path: `${LISTED_PATH}?pageSize=${PAGE_SIZE}`, headers, expect: 200 });
    },
  },
  {
    id: 'listSchedules',
    service: 'task',
    prepare: (platform) => listOfFacilities(platform, '/Schedules'),
  },
  {
    id: 'listInstances',
    service: 'task',
    prepare: (platform) => listOfFacilities(platform, '/Instances'),
  },
  {
    id: 'completeInstance',
    service: 'task',
    prepare: async (platform) => {
      const headers = headersOf(platform);
      await addSchedules(platform, COMPLETED, 1);
      const ids = (await addInstances(platform, COMPLETED)).values();
      return () => post(`/Instances/${ids.next().value}/commands/complete`, {}, headers);
    },
  },
];

/** All operations, in the order of the table. */
export const PACED_OPERATIONS: readonly Operation[] = [...OPERATIONS, ...FURTHER];

const LISTED_PATH = SETTINGS.replace('Billing', 'Listed');

async function putListedSettings(load: HttpLoad, headers: Readonly<Record<string, string>>): Promise<void> {
  const body = JSON.stringify({ settingValue: { code: 'EUR', note: 'x'.repeat(200) } });
  for (let count = 0; count < LISTED_SETTINGS; count += 1)
    await load.send({ method: 'PUT', path: `${LISTED_PATH}/Name-${count}`, headers, body, expect: 200 });
}

/** Requests the first page of a list, for a different facility each time. */
async function listOfFacilities(platform: TestPlatform, path: '/Schedules' | '/Instances') {
  const headers = headersOf(platform);
  await fillListed(platform);
  let count = 0;
  return () => {
    const facilityId = LISTED.first + (count++ % LISTED.count);
    const query = `facilityId=${facilityId}&pageSize=${PAGE_SIZE}`;
    return { method: 'GET', path: `${path}?${query}`, headers, expect: 200 } as const;
  };
}

const filled = new WeakSet<TestPlatform>();

/** Creates the data of both lists, once per platform. */
async function fillListed(platform: TestPlatform): Promise<void> {
  if (filled.has(platform)) return;
  filled.add(platform);
  await addSchedules(platform, LISTED, SCHEDULES_OF_LISTED);
  await addInstances(platform, LISTED);
}
