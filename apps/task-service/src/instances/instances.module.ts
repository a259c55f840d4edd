import { Module } from '@nestjs/common';
import { CompleteInstance } from './complete-instance.handler';
import { InstancesController } from './instances.controller';

@Module({ controllers: [InstancesController], providers: [CompleteInstance] })
export class InstancesModule {}
