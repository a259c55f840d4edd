import { runService } from '@platform/service-defaults';
import { loadTaskServiceConfig } from './config';
import { taskService } from './service-definition';

void runService('task-service', () => taskService(loadTaskServiceConfig()));
