#!/usr/bin/env python
# coding: utf-8

# # Ratings of movies as they come in

# In[1]:


from pyspark.sql import SparkSession
from pyspark.sql.functions import avg, count, desc

spark = SparkSession.builder.master("local[*]").appName("MovieRatings").getOrCreate()


# In[2]:


schema = "movie_id LONG, rating DOUBLE, rated_at TIMESTAMP"
ratings = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json("data/ratings/")
ratings.isStreaming


# In[3]:


averages = ratings.groupBy("movie_id").agg(avg("rating").alias("average"), count("rating").alias("votes"))


# In[4]:


query = averages.writeStream.queryName("movie_ratings").format("memory").outputMode("complete").start()
query.processAllAvailable()


# In[5]:


spark.sql("SELECT * FROM movie_ratings").orderBy(desc("average")).show()


# In[6]:


query.stop()
