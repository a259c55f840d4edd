import { describeApiDocument } from '@platform/testing';
import { loadTaskServiceConfig } from '../src/config';
import { taskService } from '../src/service-definition';
import { environment } from './task-fixture';

const USAGE = `
type Create = operations['createSchedule']['requestBody']['content']['application/json'];
export const request: Create = { facilityId: 501, name: 'Weekly round', schedule: '0 9 * * 1', timeZone: 'Europe/Berlin' };
type Schedule = components['schemas']['Schedule'];
export const isActive = (schedule: Schedule): boolean => schedule.status === 'Active';
type List = NonNullable<paths['/Instances']['get']['parameters']['query']>;
export const query: List = { facilityId: 501, status: 'Pending', pageSize: 50 };
`;

const config = {
  ...environment('http://127.0.0.1:9'),
  DATABASE_URL: 'postgres://127.0.0.1/none',
  RABBITMQ_MAIN_URL: 'amqp://127.0.0.1',
  RABBITMQ_SCHEDULING_URL: 'amqp://127.0.0.1',
};

describeApiDocument(() => taskService(loadTaskServiceConfig(config)), USAGE);
