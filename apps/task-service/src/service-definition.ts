import { GETTING_A_TOKEN, OpenApi, conventions } from '@platform/open-api';
import type { ServiceDefinition } from '@platform/service-defaults';
import { AppModule } from './app.module';
import type { TaskServiceConfig } from './config';

const DESCRIPTION = `Recurring tasks of facilities: schedules, the task instances generated from them, and the triggers that start their generation.

A **schedule** is a recurring task of a facility. A facility's **trigger** fires the generation of **task instances** from
its active schedules, by default up to 30 days ahead. Customers and owners see and change only the facilities in their
token; service providers see and complete instances of theirs; InternalPartner sees all.

${GETTING_A_TOKEN}

\`\`\`sh
curl -sS http://127.0.0.1:3003/Schedules -H "Authorization: Bearer $ACCESS_TOKEN" -H 'Content-Type: application/json' \\
  -d '{"facilityId":501,"name":"Weekly round","schedule":"0 9 * * 1","timeZone":"Europe/Berlin"}'
\`\`\`

Schedules that are created or changed, and instances that are completed or cancelled, are announced on the message bus; \`docs/asyncapi.yaml\` describes the messages.

${conventions()}`;

const API_DOCS = new OpenApi({
  description: DESCRIPTION,
  developmentUrl: 'http://127.0.0.1:3003',
  tags: [
    { name: 'Schedules', description: 'Recurring tasks of facilities.' },
    { name: 'Calendars', description: 'Dates on which schedules have no occurrences.' },
    { name: 'Instances', description: 'The single tasks: find them, complete them, cancel them.' },
    {
      name: 'Recurring generation',
      description: 'Commands that go over the bus and wait for the reply.',
    },
    { name: 'Triggers', description: "The scheduler's triggers, one per facility." },
    { name: 'Diagnostics', description: 'Checks whether the service responds.' },
  ],
});

const BODY_LIMIT_BYTES = 64 * 1_024;

/** Builds the definition of the task service, for production and tests. */
export function taskService(config: Readonly<TaskServiceConfig>): ServiceDefinition {
  return {
    name: 'task-service',
    title: 'Task service',
    api: API_DOCS,
    config,
    rootModule: AppModule.forRoot(config),
    bodyLimitBytes: BODY_LIMIT_BYTES,
    configure: (app) => {
      if (config.TASK_BASE_PATH !== '') app.setGlobalPrefix(config.TASK_BASE_PATH);
    },
  };
}
