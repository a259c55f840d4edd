import type { ServiceDefinition } from '@platform/service-defaults';
import { API_DOCS } from './api-docs';
import { AppModule } from './app.module';
import type { TaskServiceConfig } from './config';

const BODY_LIMIT_BYTES = 64 * 1_024;

/** How the task service is built; the same in production and in tests. */
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
