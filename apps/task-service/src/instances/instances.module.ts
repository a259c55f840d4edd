import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { OutboundModule } from '../outbound/outbound.module';
import { TaskInstance } from './instance.entity';
import { InstancesController } from './instances.controller';
import { InstancesRepository } from './instances.repository';
import { InstancesService } from './instances.service';
import { ReleasedInstancesRepository } from './released-instances.repository';
import { Template } from './template.entity';
import { TemplatesRepository } from './templates.repository';

const REPOSITORIES = [InstancesRepository, ReleasedInstancesRepository, TemplatesRepository];

/** Task instances, and the templates that they share. */
@Module({
  imports: [TypeOrmModule.forFeature([TaskInstance, Template]), OutboundModule],
  controllers: [InstancesController],
  providers: [...REPOSITORIES, InstancesService],
  exports: REPOSITORIES,
})
export class InstancesModule {}
